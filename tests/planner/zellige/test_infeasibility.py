"""Infeasible problems: the first code in the page's order, and a relaxation that can be tried at once."""

from __future__ import annotations

import math

import pytest
import zellige_cases as cases
from hypothesis import given, settings
from oracle import best_by_enumeration

from planner.errors import InfeasibleError, LimitError
from planner.papers.zellige.infeasibility import diagnose, prove_packing
from planner.papers.zellige.instance import compile_instance
from planner.papers.zellige.packing import least_memory_cap
from planner.papers.zellige.problem import ZelligeProblem
from solvers.report import Limits


def refusal(problem: ZelligeProblem) -> InfeasibleError:
    instance = compile_instance(problem)
    with pytest.raises(InfeasibleError) as caught:
        diagnose(instance)
        prove_packing(instance, Limits())
    return caught.value


def with_cap(problem: ZelligeProblem, cap: float) -> ZelligeProblem:
    return problem.model_copy(update={"cluster": problem.cluster.model_copy(update={"memory_cap_bytes": cap})})


def test_z5_total_memory() -> None:
    error = refusal(cases.golden("Z5"))
    assert (error.code, error.required, error.available) == ("memory_total", 24, 20)
    assert error.relaxation is not None
    # The total only proves 12; two halves of 5 and one whole of 8 share two ranks at 13.
    assert (error.relaxation.field, error.relaxation.value) == ("cluster.memory_cap_bytes", 13)
    assert error.relaxation.proven


def test_a_degree_without_rank_sets_names_its_sequence() -> None:
    # Two nodes of 2: degree 3 fits no node and is no multiple of one.
    error = refusal(cases.problem(4, 10, {"a": (1, {"whole": (1, 1)}), "b": (1, {"q3": (1, 1)})}, node=2))
    assert error.code == "no_rank_set"
    assert '"b0"' in error.message
    assert error.where == "groups.b.options"


def test_a_sequence_larger_than_a_rank_is_named_with_its_smallest_option() -> None:
    error = refusal(cases.problem(2, 10, {"a": (1, {"whole": (1, 30), "q2": (1, 16)}), "b": (1, {"whole": (1, 1)})}))
    assert (error.code, error.required, error.available) == ("memory_single_sequence", 16, 10)
    assert '"a0"' in error.message
    # The raised cap brings the option back: 16 on both ranks and b on one of them.
    assert error.relaxation is not None and error.relaxation.value == 17


def test_a_rank_set_comes_before_memory() -> None:
    groups: dict[str, tuple[int, cases.Options]] = {"a": (1, {"whole": (1, 99)}), "b": (1, {"q3": (1, 99)})}
    assert refusal(cases.problem(4, 10, groups, node=2)).code == "no_rank_set"


def test_packing_that_fails_in_spite_of_the_total() -> None:
    # Three sequences of 6 on two ranks of 10: 18 <= 20, but no two share a rank.
    error = refusal(cases.problem(2, 10, {"a": (3, {"whole": (1, 6)})}))
    assert (error.code, error.required, error.available) == ("memory_packing", 12, 10)
    assert error.relaxation is not None and error.relaxation.value == 12 and error.relaxation.proven


def test_packing_needs_a_search_where_no_bound_sees_it() -> None:
    # 5, 5, 3, 3, 3 into 9 + 9 + ...: 19 of 20 in total; sums of 10 are reachable only as 5 + 5 (9 left for 3 + 3 + 3).
    groups: dict[str, tuple[int, cases.Options]] = {"a": (2, {"whole": (1, 5)}), "b": (3, {"whole": (1, 3)})}
    placement, makespan_s = prove_packing(compile_instance(cases.problem(2, 10, groups)), Limits())
    assert makespan_s == 3
    assert sum(placement.values()) == 5


def test_a_budget_that_ends_is_a_limit_and_no_proof() -> None:
    # A cap of a quarter of the total needs a perfect partition, which no rule of thumb finds.
    sizes = [10**6 + (7919 * i * i) % 99991 for i in range(40)]
    groups: dict[str, tuple[int, cases.Options]] = {f"g{i}": (1, {"whole": (1, size)}) for i, size in enumerate(sizes)}
    problem = cases.problem(4, math.ceil(sum(sizes) / 4), groups)
    with pytest.raises(LimitError):
        prove_packing(compile_instance(problem), Limits(effort=1e-6))


@given(cases.small_problems())
@settings(max_examples=40, deadline=None)
def test_the_relaxation_is_enough_and_the_least_that_is(problem: ZelligeProblem) -> None:
    compiled = compile_instance(with_cap(problem, 1e9))
    if not all(kind.modes for kind in compiled.kinds):
        return  # a sequence without rank sets, whatever the cap
    cap, proven = least_memory_cap(problem, Limits())
    assert proven
    if cap > 0:
        assert best_by_enumeration(compile_instance(with_cap(problem, cap))) is not None
    if cap > 1:  # bytes are whole here
        less = compile_instance(with_cap(problem, cap - 1))
        assert not all(kind.modes for kind in less.kinds) or best_by_enumeration(less) is None


@given(cases.small_problems())
@settings(max_examples=60, deadline=None)
def test_a_problem_is_refused_exactly_when_nothing_fits(problem: ZelligeProblem) -> None:
    instance = compile_instance(problem)
    possible = all(kind.modes for kind in instance.kinds) and best_by_enumeration(instance) is not None
    if possible:
        diagnose(instance)
        prove_packing(instance, Limits())
    else:
        error = refusal(problem)
        assert error.code == "no_rank_set" or error.relaxation is not None


def test_memory_that_is_no_multiple_of_anything_is_packed_and_refused_alike() -> None:
    third = 10 / 3  # three thirds of ten fill a rank; a seventh piece has no room on two
    groups: dict[str, tuple[int, cases.Options]] = {
        "a": (6, {"whole": (1, third)}),
        "b": (1, {"whole": (1, 2**0.5 * 1e-3)}),
    }
    placement, _ = prove_packing(compile_instance(cases.problem(2, 10.01, groups)), Limits())
    assert sum(placement.values()) == 7
    error = refusal(cases.problem(2, 10.0008, groups))
    assert error.code == "memory_packing"
    assert error.relaxation is not None
    assert error.relaxation.value == pytest.approx(10 + 2**0.5 * 1e-3)
