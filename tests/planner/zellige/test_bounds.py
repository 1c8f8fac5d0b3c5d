"""Lower bounds: the values of the page, never above the optimum, the same at every scale."""

from __future__ import annotations

import math

import numpy as np
import pytest
import zellige_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import best_by_enumeration

from planner.papers.zellige import dual_feasible
from planner.papers.zellige.bounds import SAFETY, quick_bounds
from planner.papers.zellige.count_bound import count_bound, crossed
from planner.papers.zellige.instance import Instance, compile_instance

SLACK = 1 + 1e-12


def values(instance: Instance) -> dict[str, float]:
    return {bound.name: bound.value for bound in quick_bounds(instance)}


def test_z1_has_the_bounds_of_the_page() -> None:
    found = values(cases.golden_instance("Z1"))
    assert found["LB0"] == 5.0  # (4*1 + 8 + 2*4) / 4
    assert found["LB1"] == 5.25  # below 8 s the long sequence works 2*4.5
    assert found["LB2"] == 5.25
    assert found["LB3"] == pytest.approx(90 / 17, rel=2e-9)  # 5.2941


def test_z1_count_bound_is_at_least_the_page_value_and_at_most_the_optimum() -> None:
    assert 5.40 <= count_bound(cases.golden_instance("Z1"), 5.5).value <= 5.5


def test_z2_every_bound_is_nine() -> None:
    instance = cases.golden_instance("Z2")
    assert values(instance) == pytest.approx({"LB0": 9, "LB1": 9, "LB2": 9, "LB3": 9}, rel=2 * SAFETY)
    assert count_bound(instance, 9.0).value == pytest.approx(9)


def test_z4_memory_raises_the_bound() -> None:
    instance = cases.golden_instance("Z4")
    found = values(instance)
    assert found["LB1"] == pytest.approx(5.16)
    assert found["LB2"] == pytest.approx(5.267, abs=5e-4)
    assert 5.76 <= count_bound(instance, 5.8).value <= 5.8


def test_z6_a_long_sequence_bounds_its_own_makespan() -> None:
    # At most 4 ranks: LB0 = (12 + 9) / 4; options below 6.25 s cross nodes and would work 16.
    assert values(cases.golden_instance("Z6"))["LB1"] == 6.25


def test_z7_pieces_of_half_a_rank_are_counted() -> None:
    instance = cases.golden_instance("Z7")
    found = values(instance)
    assert found["LB1"] == 7.5
    assert found["LB3"] == pytest.approx(11.0, rel=2e-9)
    # Below 11.5 no rank holds a 6 and a 5.5: cuts at the sizes themselves see it, the page's fixed ones do not.
    assert count_bound(instance, 11.5).value == pytest.approx(11.5, rel=2e-5)


@pytest.mark.parametrize("name", cases.EXPECTED)
def test_count_bound_refines_the_quick_ones(name: str) -> None:
    instance, makespan_s = cases.golden_instance(name), cases.EXPECTED[name][0]
    bound = count_bound(instance, makespan_s).value
    assert max(values(instance).values()) * (1 - 2 * SAFETY) <= bound <= makespan_s * SLACK


def test_memory_that_does_not_suffice_makes_the_bound_infinite() -> None:
    # Three pieces of 8 bytes on two ranks of 10: 24 > 20.
    assert math.isinf(values(cases.golden_instance("Z5"))["LB2"])


@given(cases.small_problems())
@settings(max_examples=150, deadline=None)
def test_no_bound_exceeds_the_optimum(problem: cases.ZelligeProblem) -> None:
    instance = compile_instance(problem)
    best = best_by_enumeration(instance)
    if best is None:
        return
    assert max(values(instance).values()) <= best[0] * SLACK
    assert count_bound(instance, best[0]).value <= best[0] * SLACK
    assert count_bound(instance, 2 * best[0]).value <= best[0] * SLACK


@given(cases.small_problems())
@settings(max_examples=60, deadline=None)
def test_bounds_grow_in_order(problem: cases.ZelligeProblem) -> None:
    instance = compile_instance(problem)
    found = values(instance)
    assert found["LB0"] <= found["LB1"] * SLACK
    assert found["LB1"] <= found["LB2"]
    assert found["LB1"] <= found["LB3"] * (1 + 2 * SAFETY)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6])
@pytest.mark.parametrize("name", cases.EXPECTED)
def test_bounds_scale_with_the_prices(name: str, scale: float) -> None:
    one, other = cases.golden_instance(name), cases.golden_instance(name, scale)
    assert values(other) == pytest.approx({key: value * scale for key, value in values(one).items()}, rel=1e-9)
    best = cases.EXPECTED[name][0]
    assert count_bound(other, best * scale).value == pytest.approx(count_bound(one, best).value * scale, rel=3e-5)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=300)
def test_dual_feasible_functions_are_dual_feasible(sizes: list[float]) -> None:
    while sum(sizes) > 1:
        sizes = sizes[:-1]
    table = dual_feasible.evaluate(np.array([sizes or [0.0]]) * (1 - 1e-12), range(dual_feasible.NUM_FUNCTIONS))
    assert (table.sum(axis=-1) <= 1 + 1e-9).all()


@given(st.floats(0, 1), st.floats(0, 1))
def test_dual_feasible_functions_are_monotone(one: float, other: float) -> None:
    table = dual_feasible.evaluate(np.array(sorted((one, other))), range(dual_feasible.NUM_FUNCTIONS))
    assert (table[:, 0] <= table[:, 1] + 1e-12).all()


def test_theorem_1_the_ideal_makespan_is_the_even_share() -> None:
    # No communication cost: LB0 = W / N is reached (page eq. 6, Γ = 1 for the joint plan).
    assert values(cases.golden_instance("Z3"))["LB0"] == 4.0 == cases.EXPECTED["Z3"][0]


@given(st.lists(st.tuples(st.floats(0.001, 1), st.floats(0, 1)), min_size=1, max_size=8))
@settings(max_examples=300)
def test_crossed_weights_of_pieces_that_share_a_rank_add_up_to_at_most_one(pieces: list[tuple[float, float]]) -> None:
    x, y = np.array(pieces).T
    fits = (np.cumsum(x) <= 1) & (np.cumsum(y) <= 1)
    for one, other in ((x, y), (y, x)):
        assert (crossed(one, other)[:, fits].sum(axis=1) <= 1 + 1e-9).all()


def test_a_long_sequence_wastes_the_memory_that_its_fillers_would_need() -> None:
    # Two ranks of 10 bytes. The long one (9 s, 1 byte) leaves a rank 9 bytes; ten fillers of 1 s and 1.5 bytes need
    # 15 of the 20 in all. Up to 9.x s only one of them fits beside it and six on the other rank: 7 of 10 placed.
    groups: dict[str, tuple[int, cases.Options]] = {
        "long": (1, {"whole": (9.0, 1)}),
        "fill": (8, {"whole": (1.0, 1.5)}),
    }
    instance = compile_instance(cases.problem(2, 10, groups))
    best = best_by_enumeration(instance)
    assert best == (11.0, 0)  # six fillers (9 bytes) on one rank, two beside the long one
    assert max(values(instance).values()) == pytest.approx(9.0, rel=1e-8)
    assert count_bound(instance, 11.0).value > 10.3


def test_a_certificate_on_request_takes_on_more_lengths() -> None:
    """Above MAX_MODES (kind, mode) pairs LB4 is LB3, unless more are allowed."""
    instance = cases.golden_instance("Z1")
    quick = max(bound.value for bound in quick_bounds(instance))
    assert count_bound(instance, 5.5, max_modes=3).value == quick
    assert count_bound(instance, 5.5, max_modes=6).value > quick
