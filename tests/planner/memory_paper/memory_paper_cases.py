"""Problems for the tests of the memory paper: the page's golden ones, and random ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from planner.papers.memory.engines import solve
from planner.papers.memory.problem import MemoryProblem
from planner.papers.memory.solution import MemorySolution
from planner.validation import validate
from solvers.report import Limits

Fields = dict[str, Any]


def dim(size: int, alpha_s: float = 0.0, beta: float = 0.0, name: str = "shard") -> Fields:
    return {"id": name, "size": size, "alpha_s": alpha_s, "beta_s_per_byte": beta}


def group(parameters: float, each: tuple[float, float, float], unit: float, dims: list[Fields]) -> Fields:
    """A group of so many parameters, of so many bytes each in parameters, gradients and optimizer."""
    return {
        "id": "dense",
        "parameters_bytes": each[0] * parameters,
        "gradients_bytes": each[1] * parameters,
        "optimizer_bytes": each[2] * parameters,
        "parameters_unit_bytes": each[0] * unit,
        "gradients_unit_bytes": each[1] * unit,
        "dims": dims,
    }


def problem_of(**fields: Any) -> MemoryProblem:
    """A problem with defaults of a device that holds all."""
    base: Fields = {
        "num_micro_batches": 1,
        "capacity_bytes": 1e15,
        "activations": {"kept_bytes": 0.0},
    }
    return validate(MemoryProblem, base | fields)


def zero_paper(beta: float = 0.0, unit: float = 0.0, **fields: Any) -> MemoryProblem:
    """G1: 7.5e9 parameters of 2 + 2 + 12 bytes over 64 devices."""
    return problem_of(groups=[group(7.5e9, (2, 2, 12), unit, [dim(64, 0.0, beta)])], **fields)


def section_6(**fields: Any) -> MemoryProblem:
    """The page's example (G3)."""
    dims = [dim(8, 1e-6, 4e-12), dim(8, 1e-5, 4e-11, "replicate")]
    activations = {
        "kept_bytes": 30e9,
        "materialised_bytes": 4e9,
        "unit_bytes": 1.5e9,
        "micro_batch_bytes": 30e9,
        "recompute_s": 0.4,
    }
    base: Fields = {
        "num_micro_batches": 2,
        "capacity_bytes": 48e9,
        "other_bytes": 3e9,
        "host": None,
        "groups": [group(7.5e9, (2, 2, 12), 0.2e9, dims)],
        "activations": activations,
    }
    return problem_of(**base | fields)


def offloading(**fields: Any) -> MemoryProblem:
    """G5: two devices of 80 GB beside a host of 256 GB."""
    base: Fields = {
        "num_micro_batches": 8,
        "capacity_bytes": 80e9,
        "other_bytes": 2e9,
        "host": {"capacity_bytes": 256e9, "beta_s_per_byte": 4e-11, "update_s_per_byte": 1e-11},
        "groups": [group(13e9, (2, 4, 12), 0.35e9, [dim(2, 1e-6, 4e-12)])],
        "activations": {"kept_bytes": 10e9},
    }
    return problem_of(**base | fields)


def solved(problem: MemoryProblem, method: str = "arrays") -> MemorySolution:
    return solve(problem, method, Limits())[0]


def modes(solution: MemorySolution) -> tuple[str, str, str, str]:
    return solution.parameters, solution.gradients, solution.optimizer, solution.activations


def prefixes(solution: MemorySolution) -> tuple[int, int, int]:
    dims = solution.shard_dims
    return dims.parameters, dims.gradients, dims.optimizer


@st.composite
def problems(draw: st.DrawFn) -> MemoryProblem:
    """One to four dimensions, one to eight groups, small whole numbers so that many placements tie."""
    num_dims = draw(st.sampled_from([1, 2, 2, 3, 4]))
    small = st.integers(0, 6).map(float)

    def group_bytes(number: int) -> Fields:
        whole = [draw(small) for _ in range(3)]
        return {
            "id": f"g{number}",
            "parameters_bytes": whole[0],
            "gradients_bytes": whole[1],
            "optimizer_bytes": whole[2],
            "parameters_unit_bytes": draw(st.integers(0, int(whole[0]))) / 2,
            "gradients_unit_bytes": draw(st.integers(0, int(whole[1]))) / 2,
        }

    def some_group(number: int) -> Fields:
        dims = [
            dim(draw(st.sampled_from([1, 1, 2, 3, 4, 8])), draw(small) / 8, draw(small) / 8, f"d{i}")
            | {"beta_of": draw(st.sampled_from(["ring", "gpu"]))}
            for i in range(num_dims)
        ]
        return group_bytes(number) | {"dims": dims}

    recomputed, offloaded = draw(st.booleans()), draw(st.booleans())

    def activations() -> Fields:
        found: Fields = {"kept_bytes": draw(small)}
        if recomputed:
            found |= {"materialised_bytes": draw(small) / 4, "recompute_s": draw(small) / 8}
        if offloaded:
            found |= {"unit_bytes": draw(small) / 4, "micro_batch_bytes": draw(small)}
        return found

    num_groups = draw(st.sampled_from([1, 1, 2, 3, 8]))
    fields: Fields = {
        "num_micro_batches": draw(st.integers(1, 4)),
        "rank": 5,
        "groups": [some_group(number) for number in range(num_groups)],
        "activations": activations(),
        "workspace_bytes": draw(small) / 8,
        "ranks": [
            {
                "rank": rank,
                "groups": [group_bytes(number) for number in range(num_groups)],
                "activations": activations(),
                "workspace_bytes": draw(small) / 8,
            }
            for rank in range(draw(st.sampled_from([0, 0, 1, 3])))
        ],
        "other_bytes": draw(small) / 8,
        "capacity_bytes": 1.0 + draw(st.integers(0, 80)),
    }
    if draw(st.booleans()):
        fields["host"] = {
            "capacity_bytes": 1.0 + draw(st.integers(0, 40)),
            "beta_s_per_byte": draw(small) / 8,
            "update_s_per_byte": draw(small) / 8,
        }
    return problem_of(**fields)
