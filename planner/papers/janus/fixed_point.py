"""The operating point (page, "Model" 5): the smallest batch that the demand keeps in flight, exactly.

With g(B) = demand x TPOT(B), which never falls, g(1) > 1 bounds the smallest root of B = g(B) from below by
g(1): below it g(B) >= g(1) > B. So does g(p) for every p looked at with g(p) > p. The walk goes to the first breakpoint
p at or above that bound y; up to it g is a line. Either g(p) <= p, and the line from y to p holds the smallest root,
or g(p) > p is the next bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.papers.janus.model import Floats, Pairs, tpot_s


def batches(pairs: Pairs, demand: ArrayLike, ceiling: ArrayLike = np.inf) -> Floats:
    """The smallest B >= 1 [n] with B >= demand x TPOT(B); NaN where it is past the data.

    ``demand`` [1/s] broadcasts to [n], and so does ``ceiling``: a pair may be given up, as NaN, once its batch is
    known to be larger.
    """
    rate = np.broadcast_to(np.asarray(demand, dtype=np.float64), len(pairs))
    most = np.broadcast_to(np.minimum(ceiling, pairs.option.largest_batch), len(pairs))
    found = np.full(len(pairs), np.nan)
    at_least = rate * tpot_s(pairs, np.ones(len(pairs)))
    found[at_least <= 1] = 1.0
    left = np.flatnonzero((at_least > 1) & (at_least <= most))
    pairs, rate, most, at_least = pairs.take(left), rate[left], most[left], at_least[left]
    while len(left):
        point = _next_breakpoint(pairs, at_least)
        wanted = rate * tpot_s(pairs, point)
        here = np.flatnonzero(wanted <= point)
        if len(here):
            some = pairs.take(here)
            low, high = at_least[here], point[here]
            rise = np.maximum(rate[here] * tpot_s(some, low) - low, 0.0)
            fall = high - wanted[here]
            share = np.divide(rise, rise + fall, out=np.zeros_like(rise), where=rise > 0)
            found[left[here]] = low + (high - low) * share
        on = np.flatnonzero((wanted > point) & (wanted <= most))
        at_least = wanted
        if len(on) < len(left):
            left, pairs, rate, most, at_least = left[on], pairs.take(on), rate[on], most[on], wanted[on]
    return found


def _next_breakpoint(pairs: Pairs, batch: Floats) -> Floats:
    """The first point of the grid, or kink, at or above each batch [n]; none is past the grid."""
    grid = pairs.option.grid
    point = grid[np.searchsorted(grid, batch, side="left")]
    kinks = np.where(pairs.kinks >= batch, pairs.kinks, np.inf).min(axis=0)
    return np.asarray(np.minimum(point, kinks))
