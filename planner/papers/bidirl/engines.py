"""The methods of the paper (page, section 4): arrays over all splits decide; the reference tries them one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.papers.bidirl.fractional import fractional_bound_s
from planner.papers.bidirl.infeasibility import no_split
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.search import Space, best_of, space_of
from planner.papers.bidirl.simulation import simulated
from planner.papers.bidirl.solution import BidirlSolution
from planner.papers.bidirl.split_figures import figures_of
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.thresholds import thresholds
from solvers.report import Limits, Report, Status


def solve(problem: BidirlProblem, method: str | None, limits: Limits) -> tuple[BidirlSolution, Report]:
    """The split of least objective by a method, by default ``enumeration``, when to lend, and the replay.

    Raises InfeasibleError, and LimitError (exhaustive, of too many splits).
    """
    del limits
    name = method or "enumeration"
    space = space_of(problem)
    split = METHODS[name](problem, space)
    if split is None:
        raise no_split(problem)
    solution = solution_of(problem, space, split)
    reached_s = solution.objective_s
    report = Report(Status.OPTIMAL, "enumeration", name, np.__version__, reached_s, reached_s, "exhaustive")
    return solution, report


def solution_of(problem: BidirlProblem, space: Space, split: Split) -> BidirlSolution:
    """A split that is allowed and timed with all that follows from it."""
    figures = figures_of(problem, split)
    least = thresholds(problem, split)
    policy, rows = simulated(problem, space, split, least)
    return BidirlSolution(
        rollout_gpus=split.rollout_gpus,
        train_gpus=split.train_gpus,
        rollout_layout=split.rollout.id,
        train_layout=split.train.id,
        rollout_replicas=split.rollout_replicas,
        train_replicas=split.train_replicas,
        rollout_time_s=figures.rollout_s,
        train_time_s=figures.train_s,
        objective_s=figures.objective_s,
        period_s=figures.period_s,
        lambda_pipe_groups_per_s=problem.batch.prompt_groups / max(figures.rollout_s, figures.train_s),
        fractional_bound_s=fractional_bound_s(problem, figures.objective_s),
        thresholds=least,
        policy=policy,
        simulation=rows,
    )


def by_enumeration(problem: BidirlProblem, space: Space) -> Split | None:
    """All splits at once."""
    return best_of(problem, space)


def by_exhaustion(problem: BidirlProblem, space: Space) -> Split | None:
    """The reference: one split after the other, its replicas laid out GPU by GPU."""
    # Only here: the other method does without it.
    from planner.papers.bidirl.formulation import exhausted

    del space
    return exhausted(problem)


METHODS: dict[str, Callable[[BidirlProblem, Space], Split | None]] = {
    "enumeration": by_enumeration,
    "exhaustive": by_exhaustion,
}
