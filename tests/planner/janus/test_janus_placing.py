"""The placement task: methods, what is proved, batches, and slots that cannot hold the experts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from janus_experts_cases import placement_document, random_together

from planner.errors import BadInputError, InfeasibleError, LimitError
from planner.papers.janus.placing import PLACEMENT_METHODS, placement_bounds, solve_placement
from planner.papers.janus.problem import JanusProblem, PlacementProblem
from planner.papers.janus.solution import PlacementSolution
from planner.validation import validate
from solvers.report import Limits, Report, Status


def problem_of(**changes: Any) -> PlacementProblem:
    problem = validate(JanusProblem, placement_document(**changes))
    assert isinstance(problem, PlacementProblem)
    return problem


def solved(method: str | None = None, **changes: Any) -> tuple[PlacementSolution, Report]:
    return solve_placement(problem_of(**changes), method, Limits())


def random_problem(E: int, instances: int, slots: int) -> PlacementProblem:
    rng = np.random.default_rng(E)
    together = random_together(rng, E)
    pairs = [[i, j, float(together[i, j])] for i in range(E) for j in range(i + 1, E)]
    load = rng.integers(1, 50, E).astype(float).tolist()
    return problem_of(
        num_experts=E, expert_instances=instances, slots_per_instance=slots, expert_load=load, coactivation=pairs,
        batches=[],
    )  # fmt: skip


@pytest.mark.parametrize("method", [None, *PLACEMENT_METHODS])
def test_golden_j11_by_every_method(method: str | None) -> None:
    solution, report = solved(method)
    assert solution.objective == report.objective == 6.0
    assert solution.replicas == (1, 2, 1, 1, 1)
    assert solution.placement == ((0, 1, 4), (1, 2, 3))
    # Tokens {0, 1} and {3, 4}: 0 and 4 on the first instance, 3 on the second, so 1 goes to the second.
    assert solution.a_max_per_batch == (2,)
    assert report.status is (Status.FEASIBLE if method == "paper" else Status.OPTIMAL)
    assert report.method == (method or "search")


def test_the_bound_needs_no_solver_unless_certified() -> None:
    problem = problem_of()
    solution, _ = solve_placement(problem, "paper", Limits())
    quick = placement_bounds(problem, solution, False, 1.0)
    assert all(bound.kind == "fractional" and not bound.attained and 0 < bound.value <= 6 for bound in quick)
    *same, exact = placement_bounds(problem, solution, True, 1.0)
    assert (tuple(same), exact.kind, exact.value) == (quick, "solver", 6.0)


def test_more_slots_than_experts_put_all_everywhere() -> None:
    solution, report = solved(slots_per_instance=6)
    assert solution.replicas == (2,) * 5
    assert solution.placement == ((0, 1, 2, 3, 4),) * 2
    assert (report.status, report.bound_kind) == (Status.OPTIMAL, "exhaustive")
    # 5 + 5 + 1 + 2.
    assert solution.objective == 13.0
    [bound] = placement_bounds(problem_of(slots_per_instance=6), solution, True, 1.0)
    assert (bound.value, bound.attained) == (13.0, True)


def test_too_few_slots_name_the_instances_needed() -> None:
    with pytest.raises(InfeasibleError) as raised:
        solved(num_experts=5, slots_per_instance=2)
    error = raised.value
    assert (error.code, error.where, error.required, error.available) == ("expert_slots", "expert_instances", 3, 2)
    assert error.relaxation is not None
    assert (error.relaxation.field, error.relaxation.value) == ("expert_instances", 3)
    assert solved(slots_per_instance=2, expert_instances=3)[0].replicas == (1, 2, 1, 1, 1)


def test_loads_of_zero_give_spare_slots_to_the_lowest_ids() -> None:
    solution, report = solved(expert_load=[0] * 5, coactivation=[], batches=[])
    assert solution.replicas == (2, 1, 1, 1, 1)
    assert (solution.objective, report.status, solution.a_max_per_batch) == (0.0, Status.OPTIMAL, ())


def test_a_batch_without_tokens_loads_nothing() -> None:
    assert solved(batches=[[], [[3]]])[0].a_max_per_batch == (0, 1)


def test_the_search_is_never_worse_than_the_page_and_reaches_the_exact_placement() -> None:
    problem = random_problem(12, 4, 4)
    paper, search, exact = (
        solve_placement(problem, name, Limits())[0].objective for name in ("paper", "search", "exact")
    )
    assert exact <= search <= paper
    assert search <= exact * 1.02


def test_the_exact_method_refuses_what_no_model_takes() -> None:
    with pytest.raises(LimitError) as raised:
        solve_placement(random_problem(80, 8, 10), "exact", Limits())
    assert raised.value.code == "exact_too_large"


def test_more_slots_than_can_be_filled_one_by_one_are_refused() -> None:
    with pytest.raises(BadInputError) as raised:
        solved(num_experts=4096, expert_instances=4096, slots_per_instance=64, expert_load=[1] * 4096)
    assert (raised.value.code, raised.value.where) == ("too_large", "slots_per_instance")


@pytest.mark.parametrize(
    ("changes", "where", "code"),
    [
        ({"expert_load": [1, 2]}, "expert_load", "out_of_range"),
        ({"expert_load": []}, "expert_load", "missing_field"),
        ({"expert_load": [1, 2, 3, 4, -1]}, "expert_load.4", "out_of_range"),
        ({"expert_load": [1, 2, 3, 4, True]}, "expert_load.4", "wrong_type"),
        ({"coactivation": [[1, 0, 1]]}, "coactivation.0", "out_of_range"),
        ({"coactivation": [[1, 2, 1], [0, 1, 1]]}, "coactivation.1", "out_of_range"),
        ({"batches": [[[0, 0]]]}, "batches.0.0", "out_of_range"),
        ({"batches": [[[5]]]}, "batches.0.0", "out_of_range"),
        ({"routing": {"kind": "mask", "source_rank": [0], "expert_ids": [[0]]}}, "routing", "out_of_range"),
        ({"top_k": 6}, "top_k", "out_of_range"),
        ({"top_k": 0}, "top_k", "out_of_range"),
        ({"slots": 1}, "slots", "unknown_field"),
    ],
)
def test_a_placement_problem_that_makes_no_sense_is_refused(changes: dict[str, Any], where: str, code: str) -> None:
    with pytest.raises(BadInputError) as raised:
        problem_of(**changes)
    assert (raised.value.where, raised.value.code) == (where, code)
