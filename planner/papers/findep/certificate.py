"""The upper bounds behind a plan's certificate (page, "How it is solved and proved")."""

from __future__ import annotations

from planner.paper import Bound
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.scan import better_than, replay_all
from planner.papers.findep.solution import FindepSolution

FAMILY = "best of both orders"
"""The name of the bound of the two-order family."""


def bounds(problem: FindepProblem, solution: FindepSolution, certify: bool, effort: float) -> tuple[Bound, ...]:
    """What no order can exceed, and the best of the box over both orders: every candidate above the plan replayed.

    ``certify`` replays all of the box, also what the bound has ruled out. Neither needs a solver or a budget.
    """
    del effort
    found, any_order = better_than(problem, solution.objective)
    if certify:
        best, _ = replay_all(problem)
        found = solution.objective if best is None else best.objective
    return Bound(any_order, "combinatorial", "any order of the tasks"), Bound(
        found, "exhaustive", FAMILY, attained=True
    )
