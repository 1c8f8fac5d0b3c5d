"""The methods of the paper (page, section 4): the scan decides; the closed form and the reference say the same."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from planner.beside import unread
from planner.papers.compass.candidates import INTER_DECOM, Candidates, candidates
from planner.papers.compass.closed_form import proposed_degrees
from planner.papers.compass.explained import solution_of
from planner.papers.compass.infeasibility import no_strategy
from planner.papers.compass.launcher import settled
from planner.papers.compass.problem import CompassProblem
from planner.papers.compass.solution import CompassSolution
from planner.papers.compass.times import Ints
from solvers.report import Limits, Report, Status


def solve(problem: CompassProblem, method: str | None, limits: Limits) -> tuple[CompassSolution, Report]:
    """The least time by a method, by default ``scan``.

    Raises InfeasibleError (no_strategy), LimitError (exact), and BadInputError where named files were not read.
    """
    del limits
    refuse_unread(problem)
    name = method or "scan"
    offered = candidates(problem)
    solution = solution_of(problem, offered, METHODS[name](problem, offered))
    total_s = solution.metrics.total_time_s
    report = Report(Status.OPTIMAL, "enumeration", name, np.__version__, total_s, total_s, "exhaustive")
    return solution, report


def refuse_unread(problem: CompassProblem) -> None:
    """Raises BadInputError where an operator names files that were never read."""
    for operator in problem.operators:
        for field, named in (("runs", operator.runs), ("stages", operator.stages)):
            if named is not None:
                raise unread(named.path, None, f"operators.{operator.id}.{field}.path")


def by_scan(problem: CompassProblem, offered: Candidates) -> Ints:
    """Every legal degree and every fused kernel of every operator."""
    chosen = settled(problem, offered)
    if (chosen < 0).any():
        raise no_strategy(problem, offered, chosen)
    return chosen


def by_closed_form(problem: CompassProblem, offered: Candidates) -> Ints:
    """Of an operator's degrees only the one that the closed form proposes; a table's degrees are all looked at."""
    tabled = np.array([operator.inter_decom_table is not None for operator in problem.operators])[offered.operator]
    modelled = (offered.kind == INTER_DECOM) & ~tabled
    spans = [slice(first, end) for first, end in pairwise(offered.starts.tolist())]
    proposed = proposed_degrees(offered.costs, [offered.degree[span][modelled[span]].tolist() for span in spans])
    kept = ~modelled
    for span, degree in zip(spans, proposed, strict=True):
        kept[span] |= offered.degree[span] == degree
    return by_scan(problem, offered.without(~kept))


def by_exhaustion(problem: CompassProblem, offered: Candidates) -> Ints:
    """The reference: every setting of the switches, every degree tried one by one."""
    # Only here: the other methods do without it.
    from planner.papers.compass.formulation import exhausted

    by_scan(problem, offered)
    chosen = []
    for index, best in enumerate(exhausted(problem)):
        span = slice(offered.starts[index], offered.starts[index + 1])
        same = (offered.kind[span] == best.kind) & (offered.degree[span] == best.degree)
        same &= offered.variant[span] == best.variant
        chosen.append(int(offered.starts[index] + np.flatnonzero(same)[0]))
    return np.array(chosen)


METHODS: dict[str, Callable[[CompassProblem, Candidates], Ints]] = {
    "scan": by_scan,
    "closed_form": by_closed_form,
    "exact": by_exhaustion,
}
