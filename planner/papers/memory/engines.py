"""The methods of the paper (page, section 4): arrays of all placements decide; the reference says the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.papers.memory.explained import Placement, placement_at, solution_of
from planner.papers.memory.infeasibility import nothing_fits
from planner.papers.memory.placements import Placements, fitting, placements
from planner.papers.memory.problem import MemoryProblem
from planner.papers.memory.solution import MemorySolution
from solvers.report import Limits, Report, Status


def solve(problem: MemoryProblem, method: str | None, limits: Limits) -> tuple[MemorySolution, Report]:
    """The placement of least overhead that fits, by a method, by default ``arrays``. Raises InfeasibleError."""
    del limits
    name = method or "arrays"
    found = placements(problem)
    place = METHODS[name](problem, found)
    if place is None:
        raise nothing_fits(problem, found)
    solution = solution_of(problem, found, place)
    reached_s = solution.overhead_s
    report = Report(Status.OPTIMAL, "enumeration", name, np.__version__, reached_s, reached_s, "exhaustive")
    return solution, report


def by_arrays(problem: MemoryProblem, found: Placements) -> int | None:
    """All placements at once."""
    on_device, on_host = fitting(problem, found)
    return found.best(on_device & on_host)


def by_exhaustion(problem: MemoryProblem, found: Placements) -> int | None:
    """The reference: one placement after the other, from the page's words."""
    # Only here: the other method does without it.
    from planner.papers.memory.formulation import exhausted

    best = exhausted(problem)
    if best is None:
        return None
    wanted = Placement(**vars(best.stated))
    return next(place for place in range(len(found)) if placement_at(found, place) == wanted)


METHODS: dict[str, Callable[[MemoryProblem, Placements], int | None]] = {
    "arrays": by_arrays,
    "exact": by_exhaustion,
}
