"""Where the search box, not the hardware, ends a plan: maxima of the box that a better plan may lie beyond."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planner.papers.findep.candidates import orders_of
from planner.papers.findep.in_order import least_in_order_s
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.solution import FindepSolution
from planner.papers.findep.space import TIE, Stretch, fits_memory, longest_s, stretches, tokens
from planner.papers.findep.tasks import split_of


def binding_maxima(problem: FindepProblem, solution: FindepSolution) -> dict[str, int]:
    """The maxima of the search that the decision lies on and that hold it back, by field.

    ``max_m_a``: one sample more fits into memory; tables do not say what it takes. ``max_r1``, ``max_r2``: with one
    more or twice as many, whatever the other numbers, a bound (page equation 13) is above the plan's objective.
    """
    box, found = problem.search, {}
    more = fits_memory(problem, split_of(problem, solution), solution.m_a + 1, solution.r1)
    if solution.m_a == box.max_m_a and bool(more):
        found["max_m_a"] = box.max_m_a
    if problem.launcher_rules == "none":  # others leave no choice of r1 and r2
        if solution.r1 == box.max_r1 and _may_beat(problem, solution, _of_more_micro_batches(problem)):
            found["max_r1"] = box.max_r1
        if solution.r2 == box.max_r2 and _may_beat(problem, solution, _of_more_chunks(problem)):
            found["max_r2"] = box.max_r2
    return found


def _of_more_micro_batches(problem: FindepProblem) -> Iterable[Stretch]:
    return stretches(problem, _beyond(problem.search.max_r1))


def _of_more_chunks(problem: FindepProblem) -> Iterable[Stretch]:
    beyond = _beyond(problem.search.max_r2)
    search = problem.search.model_copy(update={"max_r2": beyond[-1]})
    for stretch in stretches(problem.model_copy(update={"search": search})):
        yield stretch.pick(np.isin(stretch.r2, beyond))


def _beyond(most: int) -> list[int]:
    return sorted({most + 1, 2 * most})


def _may_beat(problem: FindepProblem, solution: FindepSolution, candidates: Iterable[Stretch]) -> bool:
    for stretch in candidates:
        r1 = stretch.r1[:, None]
        least_s = least_in_order_s(stretch.times, problem.num_layers, r1, stretch.r2, orders_of(problem))
        allowed = stretch.fits & (least_s <= longest_s(problem))
        upper = np.where(allowed, tokens(problem, stretch.split, stretch.m_a, r1) / least_s, 0.0)
        if np.max(upper, initial=0.0) > solution.objective * (1 + TIE):
            return True
    return False
