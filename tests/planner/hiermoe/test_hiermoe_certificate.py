"""What a certificate rests on: sums over layers of bounds, the stronger ones only where they are asked for."""

from __future__ import annotations

from typing import Any

import hiermoe_cases as cases
import pytest

from planner.papers.hiermoe.certificate import bounds
from planner.papers.hiermoe.solution import HiermoeSolution
from planner.validation import validate

Document = dict[str, Any]


def plan(*layers: tuple[list[int], float]) -> HiermoeSolution:
    """What the bounds look at: tables and objectives."""
    stated = [
        {
            "layer_id": number,
            "dimension": 1,
            "physical_to_logical": table,
            "objective_s": objective_s,
            "a2a_s": 0.0,
            "peak_assignments": 0.0,
            "moved_experts": 0,
        }
        for number, (table, objective_s) in enumerate(layers)
    ]
    return validate(HiermoeSolution, {"layers": stated, "objective_s": 0.0})


def two_layers(**changes: Any) -> Document:
    """Golden 4 at kappa = 0.25 s, where 9 s is best and the bound counts t = 6 and 8 assignments; then golden 1."""
    document = cases.golden_4(0.25)
    document["layers"].append({"layer_id": 1, "routing": cases.golden_1()["layers"][0]["routing"]})
    return document | changes


# Golden 1 at kappa = 0.25 s: peak 2, t = 4, and 6 of 12 assignments on each rank: 5.5 s, which is its bound.
BEST = plan(([0, 1, 2, 3], 9.0), ([0, 2, 1, 3], 5.5))


def test_layers_add_up_and_the_solver_is_asked_only_for_a_certificate() -> None:
    problem = cases.problem_of(two_layers())
    (counted,) = bounds(problem, BEST, False, 1.0)
    assert counted.kind == "combinatorial" and counted.value == pytest.approx(8.0 + 5.5, rel=1e-12)
    again, proved = bounds(problem, BEST, True, 1.0)
    assert again == counted
    assert proved.kind == "solver" and proved.value == pytest.approx(9.0 + 5.5, rel=1e-9)
    assert proved.value <= 14.5


def test_a_plan_at_the_counted_bound_needs_no_more() -> None:
    problem = cases.problem_of(cases.golden_1())
    (counted,) = bounds(problem, plan(([0, 2, 1, 3], 4.0)), True, 1.0)
    assert counted.value == 4.0


def test_a_tiny_layer_with_replicas_is_certified_by_trying_all_tables() -> None:
    # Source 0 sends two tokens to each of three experts. The mean over two ranks is 3, t = 2 x 3 s; but whole experts
    # go to the nearest copy, two of them to one rank: 4 tokens, 8 s.
    document = cases.document(2, 3, 1, cases.mask([(0, (e,)) for e in (0, 0, 1, 1, 2, 2)]), redundant_slots=1)
    counted, tried = bounds(cases.problem_of(document), plan(([0, 1, 0, 2], 8.0)), True, 1.0)
    assert (counted.kind, counted.value) == ("combinatorial", 6.0)
    assert (tried.kind, tried.value) == ("exhaustive", 8.0)


def test_the_bound_with_a_move_budget_lets_each_layer_use_all_of_it() -> None:
    # Golden 1 twice. Nothing may move: each layer stays at 6 s. Two experts may: each alone could reach 4 s.
    document = cases.golden_1()
    document["layers"].append({"layer_id": 1, "routing": document["layers"][0]["routing"]})
    contiguous = plan(([0, 1, 2, 3], 6.0), ([0, 1, 2, 3], 6.0))
    for budget, least in ((0, 12.0), (1, 12.0), (2, 8.0)):
        problem = cases.problem_of(document | {"search": {"max_moved_experts": budget}})
        found = bounds(problem, contiguous, True, 1.0)
        assert max(bound.value for bound in found) == pytest.approx(least, rel=1e-9)


def test_where_nothing_may_move_what_there_is_bounds_itself_without_being_asked() -> None:
    # Golden 4 in order takes 6 + 12 kappa = 9 s, golden 1 6 s and 6 of 12 assignments on each rank, 1.5 s.
    problem = cases.problem_of(two_layers(search={"max_moved_experts": 0}))
    _, stays = bounds(problem, plan(([0, 1, 2, 3], 9.0), ([0, 1, 2, 3], 7.5)), False, 1.0)
    assert (stays.kind, stays.value) == ("exhaustive", pytest.approx(16.5, rel=1e-12))
