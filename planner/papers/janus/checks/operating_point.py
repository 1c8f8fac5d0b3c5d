"""The check's own smallest fixed point of B = lambda x TPOT(B) (page, "Model", 5)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from planner.papers.janus.checks.latency import Floats, lanes, tpot_s
from planner.papers.janus.checks.offers import Offer
from planner.papers.janus.costs import TwoPhase

CURVES = 1024
"""Pairs whose TPOT is kept."""
MESH = 64
"""Batches of the geometric mesh that is looked at besides the breakpoints."""


def smallest_batch(offer: Offer, n_a: int, n_e: int, demand: float, margin: float = 0.0) -> float | None:
    """Requests in flight; None where demand stays ahead up to the end of the grid.

    With a ``margin`` a point where lambda x TPOT only just falls to the batch, within it relatively, does not count.
    """
    points, there_s = _curve(offer, n_a, n_e)
    wanted = demand * there_s
    met = np.flatnonzero(wanted <= points * (1 - margin))
    if not len(met):
        return None
    after = int(met[0])
    if after == 0:
        return float(points[0])
    # Both are lines here, and the batch overtakes.
    behind, ahead = wanted[after - 1] - points[after - 1], points[after] - wanted[after]
    step = points[after] - points[after - 1]
    return float(points[after - 1] + step * behind / (behind + ahead)) if behind > 0 else float(points[after - 1])


def _curve(offer: Offer, n_a: int, n_e: int) -> tuple[Floats, Floats]:
    """The breakpoints of a pair, and TPOT there."""
    known = offer.curves.get((n_a, n_e))
    if known is None:
        if len(offer.curves) >= CURVES:
            offer.curves.clear()
        points = breakpoints(offer, n_a, n_e)
        known = offer.curves[n_a, n_e] = points, tpot_s(offer, n_a, n_e, points)
    return known


def breakpoints(offer: Offer, n_a: int, n_e: int) -> Floats:
    """All batches where TPOT may bend, ascending, from 1 to the end of the grid."""
    grid = [float(point) for point in offer.a_max.batch_grid]
    found = [*grid, *_mesh(grid[-1])]
    attention = offer.attention
    request_s = attention.per_request_s + attention.per_cached_token_s * offer.problem.context_tokens
    if request_s > 0:
        found.append(n_a * attention.floor_s / request_s)
    comm = offer.comm
    if isinstance(comm, TwoPhase):
        more = -(-n_e // comm.gpus_per_node) - 1
        slope = more * comm.network.beta_s_per_byte / float(lanes(comm, n_a, n_e)) - comm.multicast.beta_s_per_byte
        if slope != 0:
            payload = (comm.multicast.alpha_s - more * comm.network.alpha_s) / slope
            found.append(payload * n_a / (min(n_a, comm.gpus_per_node) * comm.bytes_per_request))
    ascending = np.unique(np.array(found))
    return ascending[(ascending >= 1) & (ascending <= grid[-1])]


@lru_cache(maxsize=64)
def _mesh(last: float) -> tuple[float, ...]:
    """Some batches besides, each so many times the one before."""
    return tuple(float(batch) for batch in np.geomspace(1.0, last, MESH))
