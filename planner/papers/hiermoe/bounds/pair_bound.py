"""How many groups tokens touch at least, whoever sits together: from how often two experts are picked by one token.

Of a token's experts in one group, j of them, each saves 1 - 1/j of a touch: j touches become one. With m = j - 1
partners that is h(m) = m / (m + 1), concave, so below every line through two neighbouring values of it; and the
partners of an expert in its group of S are at most the S - 1 that it is picked with most often.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_PAIRS = 2**30
"""Pairs of experts of one token, over all tokens, that are worth counting."""
_CHUNK = 2**20


def picked_together(ids: NDArray[np.int32], experts: int) -> Ints:
    """int64 [E, E]: tokens that select both experts; on the diagonal those that select one. ids [T, K], distinct."""
    T, K = ids.shape
    together = np.zeros(experts * experts, dtype=np.int64)
    rows = max(1, max(_CHUNK, len(together)) // (K * K))
    for first in range(0, T, rows):
        part = ids[first : first + rows].astype(np.int64)
        keys = part[:, :, None] * experts + part[:, None, :]
        together += np.bincount(keys.ravel(), minlength=len(together))
    return together.reshape(experts, experts)


def least_touches(together: Ints, size: int, top_k: int) -> float:
    """Touches of groups, over all tokens, that no way to put experts into groups of at most ``size`` goes below."""
    picked = np.diagonal(together).astype(np.float64)
    most = min(size, top_k)
    saved = picked * (1 - 1 / most)
    if most > 1:
        others = together.copy()
        np.fill_diagonal(others, 0)
        # A group may have more slots than there are experts.
        most_partners = min(size, len(others)) - 1
        partners = np.partition(others, -most_partners, axis=1)[:, -most_partners:].sum(axis=1)
        for k in range(most - 1):
            # The line through h(k) and h(k + 1).
            saved = np.minimum(saved, picked * (k / (k + 2)) + partners / ((k + 1) * (k + 2)))
    return float(picked.sum() - saved.sum())
