"""Greedy balance of rank loads: longest first, SmartMoE's rule, and the packing both are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]
Weights = NDArray[np.float64]


def packed(weights: Weights, bins: int, staying: Array | None = None) -> Array:
    """int64 [items]: the bin of each item; every bin takes the same number of them.

    By decreasing weight each item goes to the lightest bin with a free place, or stays in its bin of ``staying`` if
    that is one of the lightest. Ties: lower item, lower bin.
    """
    places = len(weights) // bins
    held = np.zeros(bins)
    count = np.zeros(bins, dtype=np.int64)
    into = np.zeros(len(weights), dtype=np.int64)
    for item in np.argsort(-weights, kind="stable"):
        free = np.where(count < places, held, np.inf)
        chosen = int(np.argmin(free))
        if staying is not None and free[staying[item]] == free[chosen]:
            chosen = int(staying[item])
        into[item] = chosen
        held[chosen] += weights[item]
        count[chosen] += 1
    return into


def longest_first(loads: Weights, ranks: int) -> Array:
    """int64 [E]: the table in which the next heaviest expert went to the rank with least load."""
    return np.argsort(packed(loads, ranks), kind="stable")


def smart_moe(loads: Weights, table: Array, ranks: int) -> Array:
    """int64 [E]: SmartMoE's greedy (USENIX ATC 2023) from a placement, adopted only if the largest rank load falls."""
    slots = len(table) // ranks
    rank_now = np.empty(len(table), dtype=np.int64)
    rank_now[table] = np.arange(len(table)) // slots
    rank_then = packed(loads, ranks, rank_now)
    if _peak(loads, rank_then, ranks) < _peak(loads, rank_now, ranks):
        return np.argsort(rank_then, kind="stable")
    return table.copy()


def _peak(loads: Weights, rank_of: Array, ranks: int) -> float:
    return float(np.bincount(rank_of, weights=loads, minlength=ranks).max())
