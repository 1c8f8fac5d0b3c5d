"""The check of a placement: copies by the rule, seats, co-activations, and AEBS, each as the page has it."""

from __future__ import annotations

import random
from typing import Any

import janus_mutations as mutations
import janus_oracle as oracle
import pytest

from planner.papers.janus.check import check
from planner.papers.janus.checks.balance import busiest
from planner.papers.janus.checks.replicas import Seats, ruled
from planner.papers.janus.problem import JanusProblem
from planner.papers.janus.solution import JanusSolution
from planner.validation import validate

Document = dict[str, Any]


def codes(problem: Document, solution: Document) -> set[str]:
    """What the check finds."""
    return {violation.code for violation in check(validate(JanusProblem, problem), validate(JanusSolution, solution))}


def test_the_pages_placement_is_accepted() -> None:
    assert codes(mutations.placement(), mutations.placed()) == set()


@pytest.mark.parametrize("name", mutations.PLACEMENT)
def test_a_placement_wrong_in_one_way_is_refused_for_that(name: str) -> None:
    problem, solution = mutations.placement(), mutations.placed()
    mutations.PLACEMENT[name].solution(solution)
    mutations.PLACEMENT[name].problem(problem)
    assert codes(problem, solution) == mutations.PLACEMENT[name].codes


@pytest.mark.parametrize(
    ("loads", "instances", "slots", "copies"),
    [
        ([100, 1, 1], 2, 3, [2, 2, 2]),  # J10: uncapped it were [4, 1, 1], which has no placement
        ([9, 3, 1], 2, 2, [2, 1, 1]),
        ([5, 5, 5, 5, 5], 2, 3, [2, 1, 1, 1, 1]),
        ([6, 9, 4, 8, 3], 2, 3, [1, 2, 1, 1, 1]),  # J11
        ([0, 0, 0], 4, 2, [4, 3, 1]),  # all equal all the way: the lowest id up to its cap, then the next
        ([1, 2], 3, 5, [3, 3]),  # more slots than experts: every one everywhere
        ([1, 2, 3], 1, 3, [1, 1, 1]),
    ],
)
def test_copies_are_those_of_the_rule(loads: list[float], instances: int, slots: int, copies: list[int]) -> None:
    assert ruled(loads, Seats(len(loads), instances, slots)) == copies
    assert oracle.ruled_replicas(loads, instances, slots) == copies


def test_copies_taken_by_worth_are_those_given_one_by_one() -> None:
    draw = random.Random(1)
    for _ in range(200):
        E, instances = draw.randint(1, 9), draw.randint(1, 5)
        slots = -(-E // instances) + draw.randint(0, 4)
        loads = [draw.choice([0.0, 1.0, 2.0, 3.0, 6.0, draw.uniform(0, 10)]) for _ in range(E)]
        assert ruled(loads, Seats(E, instances, slots)) == oracle.ruled_replicas(loads, instances, slots), loads


@pytest.mark.parametrize("batch", [[[0, 1, 2]], [[0], [1], [2]]])
def test_aebs_takes_the_least_loaded_host_by_id_also_where_that_is_not_best(batch: list[list[int]]) -> None:
    # J9: 0 goes to instance 1, 1 to instance 0, and 2 finds both of its hosts with one: the first. Best were 1 each.
    assert oracle.aebs([[1, 2], [0, 2], [0, 1]], batch) == [2, 1, 0]
    assert busiest([[1, 2], [0, 2], [0, 1]], batch) == 2


def test_aebs_of_the_check_is_that_of_the_page() -> None:
    draw = random.Random(2)
    for _ in range(200):
        E, instances = draw.randint(2, 10), draw.randint(1, 4)
        placement = [sorted(draw.sample(range(E), draw.randint(1, E))) for _ in range(instances)]
        placed = sorted({expert for experts in placement for expert in experts})
        batch = [draw.sample(placed, draw.randint(1, len(placed))) for _ in range(draw.randint(1, 5))]
        assert busiest(placement, batch) == max(oracle.aebs(placement, batch))


def test_an_empty_batch_activates_nothing() -> None:
    problem = mutations.placement() | {"batches": [[]]}
    assert codes(problem, mutations.placed() | {"a_max_per_batch": [0]}) == set()
