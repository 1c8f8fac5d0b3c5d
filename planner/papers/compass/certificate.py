"""The lower bounds behind a plan's certificate (page, section 4)."""

from __future__ import annotations

import numpy as np

from planner.paper import Bound
from planner.papers.compass.candidates import INTER_DECOM, Candidates, candidates
from planner.papers.compass.closed_form import comm_bound, gemm_bound
from planner.papers.compass.launcher import settled
from planner.papers.compass.problem import CompassProblem
from planner.papers.compass.solution import CompassSolution
from planner.papers.compass.times import Floats


def bounds(problem: CompassProblem, solution: CompassSolution, certify: bool, effort: float) -> tuple[Bound, ...]:
    """What no degree, legal or not, can be below; and the best of every candidate. Neither needs a solver."""
    del solution, certify, effort
    offered = candidates(problem)
    best_s = offered.total_s(settled(problem, offered))
    return (
        Bound(float(offered.count @ least_s(problem, offered)), "combinatorial", "any real degree"),
        Bound(best_s, "exhaustive", "every legal choice", attained=True),
    )


def least_s(problem: CompassProblem, offered: Candidates) -> Floats:
    """Equation 9 for every operator [s], each alone: the larger of both curves' least over real d >= 2.

    With a table the least of its times. Switches can only raise it.
    """
    whole = offered.without((offered.kind == INTER_DECOM) & _modelled(problem, offered)).least_s()
    chunked = np.zeros(len(problem.operators), dtype=bool)
    chunked[offered.operator[(offered.kind == INTER_DECOM) & _modelled(problem, offered)]] = True
    curves = np.maximum(comm_bound(offered.costs).least_from(2.0), gemm_bound(offered.costs).least_from(2.0))
    return np.where(chunked, np.fmin(whole, curves), whole)


def _modelled(problem: CompassProblem, offered: Candidates) -> Floats:
    """Whether a candidate's operator has no table."""
    without = np.array([operator.inter_decom_table is None for operator in problem.operators])
    return np.asarray(without[offered.operator])
