"""The lower bound behind a plan's certificate (page, section 4): the least of all placements that fit."""

from __future__ import annotations

from planner.paper import Bound
from planner.papers.memory.placements import fitting, placements
from planner.papers.memory.problem import MemoryProblem
from planner.papers.memory.solution import MemorySolution


def bounds(problem: MemoryProblem, solution: MemorySolution, certify: bool, effort: float) -> tuple[Bound, ...]:
    """What any placement takes, were memory no matter; and the best that fits. Neither needs a solver."""
    del solution, certify, effort
    found = placements(problem)
    on_device, on_host = fitting(problem, found)
    fits = on_device & on_host
    if not fits.any():
        return ()
    return (
        Bound(float(found.overhead_s.min()), "combinatorial", "any placement, fitting or not"),
        Bound(float(found.overhead_s[fits].min()), "exhaustive", "every placement that fits", attained=True),
    )
