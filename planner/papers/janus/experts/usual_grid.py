"""The batch grid of a table that states none: as far as the demand asks for, and the traces have windows."""

from __future__ import annotations

import math

from planner.errors import BadInputError
from planner.papers.janus.experts.layers import tokens_of
from planner.papers.janus.problem import ScalingProblem, SeriesProblem, SizingProblem
from planner.papers.janus.shown.words import many

PAST = 4.0
"""Times the requests that the SLO allows in flight: so a missed SLO still has its operating point."""


def usual_grid(problem: SizingProblem, place: str) -> tuple[int, ...]:
    """Powers of two from 1, of which every traced layer has a window. Raises BadInputError: one token is no trace.

    ``place`` is the path of the a_max that wants a grid.
    """
    shortest = min(len(tokens_of(problem, layer).ids) for layer in problem.layers)
    if shortest < 2:
        message = f"a layer has {many(shortest, 'token')}, which is no trace: expected at least 2"
        raise BadInputError(message, code="out_of_range", where=place)
    last = min(wanted_power(problem), int(math.log2(shortest)))
    return tuple(2**power for power in range(last + 1))


def wanted_power(problem: SizingProblem) -> int:
    """The power of two that demand and SLO ask a usual grid to end at, however long the traces are."""
    return math.ceil(math.log2(max(2.0, PAST * largest_demand(problem) * problem.slo_tpot_s)))


def largest_demand(problem: SizingProblem) -> float:
    """Output tokens per second, of a series at its peak."""
    if isinstance(problem, ScalingProblem):
        return problem.demand_tokens_per_s
    if isinstance(problem, SeriesProblem) and problem.series:
        return max(interval.demand_tokens_per_s for interval in problem.series)
    raise TypeError("a sizing problem has a demand, a series once its arrivals are read")
