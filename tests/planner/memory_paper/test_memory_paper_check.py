"""The check refutes every kind of wrong plan, and needs nothing that planned."""

from __future__ import annotations

from typing import Any

import pytest
from memory_paper_cases import offloading, problem_of, section_6, solved

from planner.papers.memory.check import VIOLATIONS, check
from planner.papers.memory.problem import MemoryProblem
from planner.papers.memory.solution import ByState, MemorySolution, ShardDims


def changed(solution: MemorySolution, **fields: Any) -> MemorySolution:
    return solution.model_copy(update=fields)


def over(parameters: int, gradients: int, optimizer: int) -> ShardDims:
    return ShardDims(parameters=parameters, gradients=gradients, optimizer=optimizer)


def codes(problem: MemoryProblem, solution: MemorySolution) -> set[str]:
    found = check(problem, solution)
    assert {violation.code for violation in found} <= set(VIOLATIONS)
    return {violation.code for violation in found}


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        ("mode_not_allowed", {"parameters": "scattered"}),
        ("nesting", {"shard_dims": over(2, 1, 2)}),
        ("nesting", {"shard_dims": over(1, 1, 3)}),
        ("nesting", {"shard_dims": over(-1, 1, 2)}),
        ("mode_dims", {"parameters": "replicated"}),
        ("mode_dims", {"shard_dims": over(0, 1, 2)}),
        ("offload_order", {"gradients": "offloaded"}),
        ("no_host", {"optimizer": "offloaded"}),
        ("device_memory", {"shard_dims": over(1, 1, 1)}),
        ("device_bytes_mismatch", {"device_bytes": 39e9}),
        ("host_bytes_mismatch", {"host_bytes": 1.0}),
        ("communication_bytes_mismatch", {"communication_bytes": 1.0}),
        ("objective_mismatch", {"overhead_s": 0.4}),
        ("by_state_mismatch", {"by_state": ByState(parameters=1.0, gradients=1.0, optimizer=1.0, activations=1.0)}),
    ],
)
def test_a_wrong_plan_of_the_pages_example_is_refuted_by_code(code: str, fields: dict[str, Any]) -> None:
    problem = section_6()
    solution = solved(problem)
    assert codes(problem, solution) == set()
    assert code in codes(problem, changed(solution, **fields))


@pytest.mark.parametrize(
    ("field", "code"),
    [
        ("device_bytes", "device_bytes_mismatch"),
        ("communication_bytes", "communication_bytes_mismatch"),
        ("overhead_s", "objective_mismatch"),
    ],
)
def test_figures_agree_to_a_billionth_and_no_further(field: str, code: str) -> None:
    problem = section_6()
    solution = solved(problem)
    stated = getattr(solution, field)
    assert codes(problem, changed(solution, **{field: stated * (1 + 1e-10)})) == set()
    assert codes(problem, changed(solution, **{field: stated * (1 + 1e-8)})) == {code}


def test_a_host_that_cannot_hold_the_plan_is_named() -> None:
    solution = solved(offloading())
    host = {"capacity_bytes": 77e9, "beta_s_per_byte": 4e-11, "update_s_per_byte": 1e-11}
    # 156 GB of optimizer states over 2 devices.
    assert codes(offloading(host=host), solution) == {"host_memory"}


def test_modes_that_the_search_leaves_out_or_the_activations_do_not_offer_are_not_allowed() -> None:
    solution = solved(section_6())
    assert "mode_not_allowed" in codes(section_6(search={"parameters": ["replicated"]}), solution)
    recomputed = changed(solution, activations="materialised")
    problem = section_6(activations={"kept_bytes": 30e9})
    assert codes(problem, solution) == set()
    assert codes(problem, recomputed) == {"mode_not_allowed"}


def test_of_placements_that_do_not_exist_no_bytes_are_counted() -> None:
    problem = problem_of(groups=section_6().model_dump()["groups"])
    wrong = changed(solved(problem), optimizer="nowhere", device_bytes=0.0, overhead_s=-1.0)
    assert codes(problem, wrong) == {"mode_not_allowed"}
