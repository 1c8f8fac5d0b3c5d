"""The methods of the paper (page, section 4): the search decides; the reference tries every layout in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.papers.layout.evaluate import Evaluated
from planner.papers.layout.infeasibility import no_layout
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.reasons import Losses
from planner.papers.layout.search.best import best
from planner.papers.layout.search.candidates import candidates
from planner.papers.layout.search.evaluations import Evaluations
from planner.papers.layout.search.front import pareto
from planner.papers.layout.search.neighbours import neighbours
from planner.papers.layout.solution import LayoutSolution
from planner.papers.layout.stated import alternative, figures
from planner.papers.layout.ties import front
from solvers.report import Limits, Report, Status


@dataclass(frozen=True)
class Answer:
    """What a method found: the best layouts, best first, the front, and how many layouts fell away by which rule."""

    best: Sequence[Evaluated]
    front: Sequence[Evaluated]
    legal: int
    excluded: dict[str, int]


def solve(problem: LayoutProblem, method: str | None, limits: Limits) -> tuple[LayoutSolution, Report]:
    """The least step time by a method, by default ``search``.

    Raises InfeasibleError (memory, row_not_in_table, or a rule) and LimitError (exhaustive, of too many layouts).
    """
    del limits
    name = method or "search"
    evaluations = Evaluations(problem)
    answer = METHODS[name](problem, evaluations)
    chosen, *others = answer.best
    losses = Losses(problem, chosen)
    solution = LayoutSolution.model_validate(
        {
            **figures(chosen),
            "alternatives": [alternative(one, chosen, losses.why(one)) for one in others],
            "pareto": [alternative(one, chosen, losses.on_the_front(one)) for one in answer.front],
            "neighbours": neighbours(evaluations, losses),
            "combinations": problem.search.combinations,
            "legal": answer.legal,
            "excluded": answer.excluded,
        }
    )
    step_s = solution.step_time_s
    return solution, Report(Status.OPTIMAL, "enumeration", name, np.__version__, step_s, step_s, "exhaustive")


def by_search(problem: LayoutProblem, evaluations: Evaluations) -> Answer:
    """Rules and memory as arrays, then replay in the order of the bound until it exceeds the best."""
    offered = candidates(problem)
    if not offered.size:
        raise no_layout(problem, offered)
    found = best(offered, evaluations, 1 + problem.search.keep)
    # The certificate asks for it next.
    problem.kept.least_step_s = found[0].step_time_s
    return Answer(found, pareto(offered, evaluations, found), offered.legal, offered.excluded)


def by_exhaustion(problem: LayoutProblem, evaluations: Evaluations) -> Answer:
    """The reference: every layout evaluated in full."""
    # Only here: the search does without it.
    from planner.papers.layout.formulation import enumerate_all

    del evaluations
    found = enumerate_all(problem)
    if not found.fitting:
        raise no_layout(problem, candidates(problem))
    return Answer(found.fitting[: 1 + problem.search.keep], front(found.fitting), found.legal, found.excluded)


METHODS: dict[str, Callable[[LayoutProblem, Evaluations], Answer]] = {
    "search": by_search,
    "exhaustive": by_exhaustion,
}
