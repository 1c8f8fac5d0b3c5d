"""How often each expert of a layer is asked, and each two of them together, by index counting."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

KEYS = 2**17
"""Keys counted at a time: they stay in a processor's cache."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """``load`` float64 [E]: c(e), tokens of each expert. ``together`` float64 [E, E]: w(e, e'), symmetric, 0 on the
    diagonal."""

    load: NDArray[np.float64]
    together: NDArray[np.float64]


def count(ids: NDArray[np.int32], experts: int) -> Statistics:
    """The statistics of tokens [T, K], their experts ascending and distinct."""
    T, K = ids.shape
    load = np.bincount(ids.ravel(), minlength=experts).astype(np.float64)
    counts = np.zeros(experts * experts, np.int64)
    rows = max(KEYS, experts * experts)
    columns = np.ascontiguousarray(ids.T)
    for start in range(0, T, rows):
        part = columns[:, start : start + rows].astype(np.int64)
        for low, high in combinations(range(K), 2):
            counts += np.bincount(part[low] * experts + part[high], minlength=len(counts))
    upper = counts.reshape(experts, experts).astype(np.float64)
    return Statistics(load, upper + upper.T)


def of_pairs(load: tuple[float, ...], pairs: tuple[tuple[int, int, float], ...]) -> Statistics:
    """The statistics that a document writes out."""
    E = len(load)
    together = np.zeros((E, E))
    if pairs:
        one, other, weight = (np.array(column) for column in zip(*pairs, strict=True))
        together[one, other] = together[other, one] = weight
    return Statistics(np.array(load, np.float64), together)


def pairs_of(statistics: Statistics) -> list[tuple[int, int, float]]:
    """[i, j, w] of all pairs that occur, i < j, ascending: as a document writes them."""
    one, other = np.nonzero(np.triu(statistics.together, 1))
    weights = statistics.together[one, other]
    return list(zip(one.tolist(), other.tolist(), weights.tolist(), strict=True))
