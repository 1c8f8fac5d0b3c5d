"""What the reader of a plan should know before launching, the most important first: a summary shows three."""

from __future__ import annotations

from planner.paper import Warned
from planner.papers.bidirl.presentation import split_of
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.solution import BidirlSolution
from planner.papers.bidirl.warned.prices import prices_warned
from planner.papers.bidirl.warned.rollout import rollout_warned
from planner.papers.bidirl.warned.run import run_warned

FIRST = (
    "doubtful_unit",
    "poor_fit",
    "extrapolated",
    "near_capacity",
    "table_not_falling",
    "staleness_not_judged",
    "faster_policy",
)
LAST = ("tail_dominated", "uneven_replicas", "lending_never_pays", "stale_batches", "short_run")
"""Before and after what the prices say of themselves."""


def warnings(problem: BidirlProblem, solution: BidirlSolution) -> list[Warned]:
    """All of them, each code once."""
    split = split_of(problem, solution)
    own = [*prices_warned(problem, split), *rollout_warned(problem, split), *run_warned(problem, solution)]
    given = [Warned(code, text) for code, text in (problem.cautions or {}).items()]
    by_code = {one.code: one for one in (*own, *given)}
    order = [*FIRST, *(one.code for one in given), *LAST]
    return [by_code[code] for code in dict.fromkeys(order) if code in by_code]
