"""What (9) needs of one hop for every pair of experts at once, by index counting over the K^2 pairs of each token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

KEYS = 2**17
"""Keys counted at a time: they stay in a processor's cache."""


def flags(groups: NDArray[np.int16]) -> tuple[Flags, Flags]:
    """bool [K, T] each: the expert is alone in its group; it is the first of its token in its group."""
    alone = np.ones(groups.shape, dtype=bool)
    first = np.ones(groups.shape, dtype=bool)
    for k in range(1, len(groups)):
        for j in range(k):
            apart = groups[j] != groups[k]
            alone[j] &= apart
            alone[k] &= apart
            first[k] &= apart
    return alone, first


@dataclass(eq=False)
class Statistics:
    """Of one hop, over all holders, n[e] aside.

    ``touch`` int64 [groups, E] is EG transposed: tokens with e that touch the group; ``alone`` int64 [E] is sole:
    tokens with e alone in its group; ``beside`` int64 [E, E] is SP: tokens with e alone in its group and f as well.
    """

    touch: Counts
    alone: Counts
    beside: Counts


def count_statistics(
    experts: NDArray[np.int16], groups: NDArray[np.int16], alone: Flags, first: Flags, E: int, n: int
) -> Statistics:
    """The statistics of tokens [K, T] whose experts lie in ``groups`` [K, T]."""
    K, T = experts.shape
    touch = np.zeros((n + 1) * E, dtype=np.int64)
    beside = np.zeros((E + 1) * E, dtype=np.int64)
    chunk = max(1, max(KEYS, E * E) // K)
    for start in range(0, T, chunk):
        part = slice(start, start + chunk)
        expert = experts[:, part].astype(np.int64)
        group = np.where(first[:, part], groups[:, part], np.int16(n)).astype(np.int64) * E
        lone = np.where(alone[:, part], expert, E) * E
        keys = np.empty_like(expert)
        for k in range(K):
            np.add(expert, group[k], out=keys)
            touch += np.bincount(keys.ravel(), minlength=len(touch))
            np.add(expert, lone[k], out=keys)
            beside += np.bincount(keys.ravel(), minlength=len(beside))
    square = beside.reshape(E + 1, E)[:E]
    return Statistics(touch.reshape(n + 1, E)[:n], square.diagonal().copy(), square)
