"""The golden cases of the memory page (section 10), G1 to G6, by both methods, and their checks."""

from __future__ import annotations

import pytest
from memory_paper_cases import dim, group, modes, offloading, prefixes, problem_of, section_6, solved, zero_paper

from planner.errors import InfeasibleError
from planner.papers.memory.baselines import named_placements
from planner.papers.memory.check import check
from planner.papers.memory.explained import placement_at, solution_of
from planner.papers.memory.placements import placements
from planner.papers.memory.problem import MemoryProblem
from planner.papers.memory.solution import MemorySolution

both_methods = pytest.mark.parametrize("method", ["arrays", "exact"])


def placed(problem: MemoryProblem, wanted: tuple[str, str, str, str], *i: int) -> MemorySolution:
    """The solution of a given placement."""
    found = placements(problem)
    for place in range(len(found)):
        solution = solution_of(problem, found, place)
        if modes(solution) == wanted and prefixes(solution) == i:
            return solution
    raise LookupError(wanted)


def test_the_ladder_of_zero_has_its_published_bytes_and_traffic() -> None:
    problem = zero_paper(beta=1e-10)
    found = placements(problem)
    named = named_placements(problem.num_dims)
    by_decision = {placement_at(found, place): place for place in range(len(found))}
    device_bytes, sent = {}, {}
    for name in ("dp", "zero1", "zero2", "zero3"):
        placement = named[name]
        assert placement is not None
        solution = solution_of(problem, found, by_decision[placement])
        assert check(problem, solution) == []
        device_bytes[name] = solution.device_bytes
        # B_G (N - 1) / N = 15e9 63 / 64
        sent[name] = solution.communication_bytes / (15e9 * 63 / 64)
    assert device_bytes == {"dp": 120e9, "zero1": 31.40625e9, "zero2": 16.640625e9, "zero3": 1.875e9}
    assert sent == pytest.approx({"dp": 2, "zero1": 2, "zero2": 2, "zero3": 3}, rel=1e-12)


@both_methods
def test_less_memory_goes_down_the_ladder(method: str) -> None:
    twenty = solved(zero_paper(beta=1e-10, capacity_bytes=20e9), method)
    assert (modes(twenty)[:3], prefixes(twenty)) == (("replicated", "sharded", "sharded"), (0, 1, 1))
    assert twenty.overhead_s == pytest.approx(2.953125, rel=1e-12)
    assert twenty.device_bytes == 16.640625e9
    two = solved(zero_paper(beta=1e-10, capacity_bytes=2e9), method)
    assert (modes(two)[:3], prefixes(two)) == (("gather", "sharded", "sharded"), (1, 1, 1))
    assert two.overhead_s == pytest.approx(4.4296875, rel=1e-12)
    with pytest.raises(InfeasibleError) as raised:
        solved(zero_paper(beta=1e-10, capacity_bytes=1e9), method)
    assert raised.value.code == "device_memory"
    assert raised.value.required == 1.875e9
    assert raised.value.relaxation is not None
    assert (raised.value.relaxation.field, raised.value.relaxation.value) == ("capacity_bytes", 1.875e9)


@both_methods
def test_the_pages_example_is_hsdp_with_a_fully_sharded_optimizer(method: str) -> None:
    problem = section_6()
    solution = solved(problem, method)
    assert modes(solution) == ("gather", "sharded", "sharded", "kept")
    assert prefixes(solution) == (1, 1, 2)
    assert solution.device_bytes == 39356250000.0
    assert solution.host_bytes == 0
    assert solution.communication_bytes == pytest.approx(82031250000.0, rel=1e-12)
    assert solution.overhead_s == pytest.approx(0.446432, abs=5e-7)
    assert dict(solution.by_state) == {
        "parameters": 2675000000.0,
        "gradients": 2275000000.0,
        "optimizer": 1406250000.0,
        "activations": 30000000000.0,
    }
    assert check(problem, solution) == []


def test_the_pages_example_beside_its_rivals() -> None:
    problem = section_6()
    hsdp = placed(problem, ("gather", "sharded", "sharded", "kept"), 1, 1, 1)
    assert hsdp.overhead_s == pytest.approx(solved(problem).overhead_s, rel=1e-12)
    assert hsdp.device_bytes == pytest.approx(49.2e9, rel=1e-3)
    faster = placed(problem, ("replicated", "sharded", "sharded", "kept"), 0, 1, 1)
    assert faster.overhead_s == pytest.approx(0.2889, abs=5e-5)
    assert faster.device_bytes == pytest.approx(61.5e9, rel=1e-3)
    assert [violation.code for violation in check(problem, faster)] == ["device_memory"]


@both_methods
def test_accumulation_makes_gradient_sharding_dear(method: str) -> None:
    problem = zero_paper(
        beta=1e-10,
        unit=0.2e9,
        num_micro_batches=16,
        capacity_bytes=70e9,
        other_bytes=3e9,
        activations={"kept_bytes": 30e9},
    )
    solution = solved(problem, method)
    assert (modes(solution)[:3], prefixes(solution)) == (("replicated", "replicated", "sharded"), (0, 0, 1))
    assert solution.overhead_s == pytest.approx(2.953125, rel=1e-12)
    assert solution.device_bytes == 64.40625e9
    zero2 = placed(problem, ("replicated", "sharded", "sharded", "kept"), 0, 1, 1)
    zero3 = placed(problem, ("gather", "sharded", "sharded", "kept"), 1, 1, 1)
    assert zero2.overhead_s == pytest.approx(25.10, abs=5e-3)
    assert zero3.overhead_s == pytest.approx(70.875, rel=1e-12)


@both_methods
def test_two_devices_beside_a_large_host_offload_the_optimizer(method: str) -> None:
    problem = offloading()
    solution = solved(problem, method)
    assert modes(solution) == ("replicated", "sharded", "offloaded", "kept")
    assert prefixes(solution) == (0, 1, 1)
    assert solution.device_bytes == pytest.approx(65.4e9, rel=1e-12)
    assert solution.host_bytes == 78e9
    assert solution.overhead_s == pytest.approx(3.224009, abs=5e-7)
    assert check(problem, solution) == []
    zero3 = placed(problem, ("gather", "sharded", "sharded", "kept"), 1, 1, 1)
    assert zero3.device_bytes == pytest.approx(131.8e9, rel=1e-12)


@both_methods
def test_recomputing_may_be_cheaper_than_gathering(method: str) -> None:
    problem = problem_of(
        num_micro_batches=4,
        capacity_bytes=80e9,
        other_bytes=2e9,
        groups=[group(13e9, (2, 4, 12), 0.35e9, [dim(16, 4e-6, 2.5e-11)])],
        activations={"kept_bytes": 40e9, "materialised_bytes": 5e9, "recompute_s": 0.35},
    )
    solution = solved(problem, method)
    assert modes(solution) == ("replicated", "sharded", "sharded", "materialised")
    assert prefixes(solution) == (0, 1, 1)
    assert solution.overhead_s == pytest.approx(6.884675, abs=5e-7)
    assert solution.device_bytes == pytest.approx(47.4e9, rel=1e-12)
    assert check(problem, solution) == []
    zero3 = placed(problem, ("gather", "sharded", "sharded", "kept"), 1, 1, 1)
    assert zero3.overhead_s == pytest.approx(9.75, abs=5e-3)
