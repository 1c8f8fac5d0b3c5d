"""The free-order reference: plain enumeration's answers, the page's, and bounds that rounding does not spoil."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import LimitError
from planner.papers.findep import problem as problem_file
from planner.papers.findep.formulation import MOST_MICRO_BATCHES, MOST_TASKS, free_order, too_large
from planner.papers.findep.problem import FindepProblem
from planner.validation import validate
from solvers import cpsat
from solvers.report import Limits, Status

EXAMPLE = json.loads((Path(problem_file.__file__).parent / "examples" / "default.json").read_text()) | {"memory": None}
"""B, the explicit example without memory."""


def fixed(t_a: float, t_s: float | None, t_x: float, t_e: float, t_y: float) -> FindepProblem:
    """Times that nothing changes; one expert a GPU, as many samples as chunks asked for."""

    def link(alpha_s: float) -> dict[str, float]:
        return {"alpha_s": alpha_s, "beta_s_per_token": 0.0}

    document: dict[str, Any] = {
        "num_layers": 3,
        "num_experts": 2,
        "top_k": 1,
        "tokens_per_sample": 8,
        "attention": {"alpha_s": t_a, "beta_s_per_sample": 0.0},
        "shared_expert": None if t_s is None else {"alpha_s": t_s, "beta_s_per_sample": 0.0},
        "expert": link(t_e),
        "splits": [{"attention_gpus": 2, "expert_gpus": 2, "a2e": link(t_x), "e2a": link(t_y)}],
        "search": {"max_m_a": 4, "max_r1": 4, "max_r2": 8},
    }
    return validate(FindepProblem, document)


def best_by_enumeration(durations: list[float], shared: bool, T: int, r1: int, r2: int) -> float:
    """The least makespan over every order of the tasks, without any symmetry (equation 5)."""
    t_a, t_s, t_x, t_e, t_y = durations
    tasks: dict[tuple[Any, ...], tuple[str, float, list[tuple[Any, ...]]]] = {}
    for t in range(T):
        for i in range(r1):
            last = [("y", t - 1, i, j) for j in range(r2)] + ([("s", t - 1, i)] if shared else [])
            tasks["a", t, i] = "AG", t_a, last if t else []
            if shared:
                tasks["s", t, i] = "AG", t_s, [("a", t, i)]
            for j in range(r2):
                tasks["x", t, i, j] = "A2E", t_x, [("a", t, i)]
                tasks["e", t, i, j] = "EG", t_e, [("x", t, i, j)]
                tasks["y", t, i, j] = "E2A", t_y, [("e", t, i, j)]
    awaited_by: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {name: [] for name in tasks}
    for name, (_, _, waits) in tasks.items():
        for other in waits:
            awaited_by[other].append(name)
    # Every order of every resource is met by placing tasks one after another, each as early as it can. Of what was
    # placed only ends that something still waits for matter, and when the resources are free.
    nothing: frozenset[Any] = frozenset()
    states = {(nothing, nothing, nothing)}
    for _ in tasks:
        following = set()
        for placed, ends, free in states:
            end, free_at = dict(ends), dict(free)
            for name, (resource, duration, waits) in tasks.items():
                if name in placed or not placed.issuperset(waits):
                    continue
                done = max([free_at.get(resource, 0.0), *(end[other] for other in waits)]) + duration
                now = placed | {name}
                open_ends = {
                    other: at for other, at in (end | {name: done}).items() if not now.issuperset(awaited_by[other])
                }
                following.add((now, frozenset(open_ends.items()), frozenset((free_at | {resource: done}).items())))
        states = following
    return min(max(at for _, at in free) for _, _, free in states)


durations = st.sampled_from([1.0, 2.0, 3.0, 5.0, 7.0])
shapes = st.sampled_from([(1, 2, 1), (1, 1, 2), (2, 1, 1), (2, 2, 1), (2, 1, 2), (1, 3, 1)])


@settings(max_examples=15, deadline=None)
@given(durations, st.none() | durations, durations, durations, durations, shapes)
def test_cp_sat_finds_what_the_enumeration_of_all_orders_finds(
    t_a: float, t_s: float | None, t_x: float, t_e: float, t_y: float, shape: tuple[int, int, int]
) -> None:
    T, r1, r2 = shape
    problem = fixed(t_a, t_s, t_x, t_e, t_y)
    found = free_order(problem, problem.splits[0], 1, r1, r2, T, Limits())
    expected = best_by_enumeration([t_a, t_s or 0.0, t_x, t_e, t_y], t_s is not None, T, r1, r2)
    assert (found.makespan_s, found.bound_s, found.proved) == (expected, expected, True)


def test_the_pages_plan_is_the_best_of_all_orders() -> None:
    # G2: AASS takes 40 s, ASAS 43 s, and CP-SAT proves 40 s, which the bound of 39 s does not.
    problem = validate(FindepProblem, EXAMPLE)
    found = free_order(problem, problem.splits[0], 4, 2, 2, 2, Limits(), "AASS")
    assert (found.makespan_s, found.bound_s, found.of_order_s, found.proved) == (40.0, 40.0, 40.0, True)
    other = free_order(problem, problem.splits[0], 4, 2, 2, 2, Limits(), "ASAS")
    assert (other.makespan_s, other.bound_s, other.of_order_s, other.proved) == (40.0, 40.0, 43.0, True)


def test_an_order_outside_the_family_can_be_faster_than_both() -> None:
    # Two layers of two micro-batches, r2 = 1: AASS takes 31 s, ASAS 32 s, and the best of any order 29 s.
    problem = fixed(3, 4, 1, 6, 1)
    split = problem.splits[0]
    found = {order: free_order(problem, split, 1, 2, 1, 2, Limits(), order) for order in problem.search.orders}
    assert {order: case.of_order_s for order, case in found.items()} == {"AASS": 31.0, "ASAS": 32.0}
    assert best_by_enumeration([3, 4, 1, 6, 1], True, 2, 2, 1) == 29.0
    assert {(case.makespan_s, case.bound_s, case.proved) for case in found.values()} == {(29.0, 29.0, True)}


@pytest.mark.parametrize("scale", [1e-9, 0.1, 1 / 3, 1e6])
def test_durations_without_a_common_step_are_rounded_down_and_the_bound_still_holds(scale: float) -> None:
    # sqrt(2) and sqrt(3) share no step with 1; the optimum scales with the unit.
    times = [2**0.5, 1.0, 3**0.5, 1.0, 0.3]
    t_a, t_s, t_x, t_e, t_y = (value * scale for value in times)
    problem = fixed(t_a, t_s, t_x, t_e, t_y)
    found = free_order(problem, problem.splits[0], 1, 2, 1, 2, Limits())
    expected = best_by_enumeration([t_a, t_s, t_x, t_e, t_y], True, 2, 2, 1)
    assert found.proved
    assert found.makespan_s == pytest.approx(expected, rel=1e-6)
    assert expected * (1 - 1e-6) <= found.bound_s <= expected * (1 + 1e-12)


def test_the_same_limits_give_the_same_answer() -> None:
    problem = fixed(2.3, 1.1, 0.7, 1.9, 0.4)
    first, second = (free_order(problem, problem.splits[0], 1, 3, 2, 2, Limits()) for _ in range(2))
    assert first == second


def test_a_budget_that_ends_at_once_leaves_the_given_order_and_no_false_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpsat, "run", lambda *_: cpsat.Answer(Status.LIMIT, None, 0.0, 0.0))
    problem = validate(FindepProblem, EXAMPLE)
    found = free_order(problem, problem.splits[0], 4, 2, 2, 2, Limits(), "ASAS")
    # The page's bound on D of this candidate is 39 s.
    assert (found.makespan_s, found.bound_s, found.proved) == (43.0, 39.0, False)


def test_a_wall_clock_limit_gives_no_answer_that_depends_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpsat, "run", lambda *_: cpsat.Answer(Status.LIMIT, None, 0.0, 0.0, True))
    problem = fixed(2, 1, 1, 3, 1)
    with pytest.raises(LimitError, match="time limit"):
        free_order(problem, problem.splits[0], 1, 2, 1, 2, Limits(time_limit_s=1.0))


def test_cases_that_may_not_end_are_named() -> None:
    assert too_large(2, MOST_MICRO_BATCHES, 6) is None
    assert "5 micro-batches" in (too_large(2, 5, 1) or "")
    # 3·4·(2 + 3·4) = 168 tasks.
    assert f"168 tasks, at most {MOST_TASKS}" in (too_large(3, 4, 4) or "")
