"""Lower bounds behind a plan's certificate (page, section 4)."""

from __future__ import annotations

from planner.paper import Bound
from planner.papers.bidirl.fractional import fractional_bound_s
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.search import best_split
from planner.papers.bidirl.solution import BidirlSolution
from planner.papers.bidirl.split_figures import figures_of


def bounds(problem: BidirlProblem, solution: BidirlSolution, certify: bool, effort: float) -> tuple[Bound, ...]:
    """What no split of real numbers undercuts, and the best of all allowed splits. Neither needs a solver."""
    del solution, certify, effort
    best = best_split(problem)
    if best is None:
        return ()
    reached_s = figures_of(problem, best).objective_s
    relaxed_s = fractional_bound_s(problem, reached_s)
    return (
        Bound(relaxed_s, "fractional", "replicas and chunks divided without rest"),
        Bound(reached_s, "exhaustive", "every layout pair at every allowed split", attained=True),
    )
