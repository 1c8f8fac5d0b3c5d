"""The joint reference: the page's answers, the enumeration's answers, and scale."""

from __future__ import annotations

import pytest
import zellige_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import best_by_enumeration

from planner.errors import InfeasibleError
from planner.papers.zellige.formulation import anchors, reference
from planner.papers.zellige.instance import Instance, compile_instance, loads, num_splits
from planner.papers.zellige.integers import common_step, grid_of, near_step
from planner.papers.zellige.symmetry import in_descending_order, interchangeable
from solvers.report import Limits, Status


def solved(instance: Instance) -> tuple[float, int]:
    placement, report = reference(instance, Limits())
    time, memory = loads(instance, placement)
    assert max(time) == report.objective
    assert max(memory) <= instance.memory_cap_bytes
    assert report.bound is not None and report.bound <= report.objective
    assert report.status is Status.OPTIMAL
    placed = [0] * len(instance.kinds)
    for piece, count in placement.items():
        assert piece.ranks in instance.blocks[instance.kinds[piece.kind].modes[piece.mode].config]
        placed[piece.kind] += count
    assert placed == [kind.count for kind in instance.kinds]
    return report.objective, num_splits(instance, placement)


@pytest.mark.parametrize("name", cases.EXPECTED)
def test_golden_cases_have_the_makespan_and_splits_of_the_page(name: str) -> None:
    assert solved(cases.golden_instance(name)) == pytest.approx(cases.EXPECTED[name])


@pytest.mark.parametrize("name", cases.EXPECTED)
def test_golden_cases_by_enumeration(name: str) -> None:
    instance = cases.golden_instance(name)
    if instance.num_sequences <= 7:
        assert best_by_enumeration(instance) == pytest.approx(cases.EXPECTED[name])


@pytest.mark.parametrize("scale", [1e-9, 1e6, 0.123456789])
@pytest.mark.parametrize("name", ["Z1", "Z4", "Z6", "Z7"])
def test_the_unit_of_time_changes_nothing(name: str, scale: float) -> None:
    makespan_s, splits = solved(cases.golden_instance(name, scale))
    assert (makespan_s / scale, splits) == pytest.approx(cases.EXPECTED[name])


@given(cases.small_problems())
@settings(max_examples=50, deadline=None)
def test_cp_sat_agrees_with_enumeration(problem: cases.ZelligeProblem) -> None:
    instance = compile_instance(problem)
    if not all(kind.modes for kind in instance.kinds):
        return
    best = best_by_enumeration(instance)
    if best is None:
        with pytest.raises(InfeasibleError):
            reference(instance, Limits())
    else:
        assert solved(instance) == best


@given(st.integers(2, 4), st.integers(2, 8), st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_theorem_2_one_split_reaches_the_even_share(ranks: int, extra: int, p: int) -> None:
    # (7): one sequence N·u and N·p fillers of work 1, u > (N-1)·p: joint u + p with K = 1. Splits of degree N only.
    u = (ranks - 1) * p + extra
    config = {2: "q2", 3: "q3", 4: "q4"}[ranks]
    groups: dict[str, tuple[int, cases.Options]] = {
        "long": (1, {"whole": (ranks * u, 0), config: (u, 0)}),
        "fill": (ranks * p, {"whole": (1, 0), config: (1 / ranks, 0)}),
    }
    assert solved(compile_instance(cases.problem(ranks, 1, groups))) == pytest.approx((u + p, 1))


def test_a_slack_on_the_makespan_buys_fewer_splits() -> None:
    # Z1 needs its split for 5.5; with epsilon = 0.5 the limit is 8.25 and everything fits whole at 8.0.
    instance = cases.golden_instance("Z1")
    placement, report = reference(instance, Limits(), None, 0.5)
    assert num_splits(instance, placement) == 0
    assert report.objective <= 5.5 * 1.5
    assert report.status is Status.FEASIBLE and report.bound == pytest.approx(5.5)


def test_anchors_alone_give_a_bound_for_everything() -> None:
    instance = cases.golden_instance("Z1")
    kinds = [index for index, kind in enumerate(instance.kinds) if kind.whole_s > 1]
    placement, report = anchors(instance, kinds, Limits(), 1e-3)
    assert {piece.kind for piece in placement} == set(kinds)
    assert report.bound is not None and report.bound <= 5.5


def test_the_same_limits_give_the_same_placement() -> None:
    instance = cases.golden_instance("Z4")
    assert reference(instance, Limits()) == reference(instance, Limits())


def test_prices_that_share_a_step_are_exact() -> None:
    assert common_step([5.5, 2.25], 100.0) == pytest.approx(0.25)
    assert common_step([1 / 3, 0.7], 100.0) is None
    # 5.5 / 3 and 2.25 / 3 are multiples of 1/12 but for the last digit.
    assert near_step([5.5 / 3, 2.25 / 3], 100.0) == pytest.approx(1 / 12)
    assert near_step([2**0.5, 1.0], 100.0) is None


def test_rounding_is_bounded_when_prices_share_no_step() -> None:
    groups: dict[str, tuple[int, cases.Options]] = {"a": (3, {"whole": (2**0.5, 1)}), "b": (2, {"whole": (1.0, 1)})}
    grid = grid_of(compile_instance(cases.problem(2, 10, groups)), 3.0, 5.0)
    assert not grid.exact_time
    assert 0 < grid.rounding_s(5, 5.0) < 1e-9 * 3.0


def test_sorting_interchangeable_blocks_keeps_loads_and_sorts_them() -> None:
    instance = cases.golden_instance("Z6")
    placement, _ = reference(instance, Limits())
    moved = in_descending_order(instance, placement)
    load, _ = loads(instance, moved)
    assert sorted(load) == sorted(loads(instance, placement)[0])
    assert all(load[left] >= load[right] for left, right in interchangeable(instance))
