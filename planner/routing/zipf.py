"""Tokens drawn from skewed expert weights (page, "Routing"), the same for the same seed."""

from __future__ import annotations

import numpy as np

from planner.routing.routed import Tokens

CHUNK_NUMBERS = 2**20
"""Random keys held at once: the draw never holds tokens x experts."""


def draw(ranks: int, tokens_per_rank: int, experts: int, top_k: int, exponent: float, seed: int) -> Tokens:
    """K distinct experts a token by Gumbel top-K with weights (place + 1)^-exponent over a permutation of the experts.

    Tokens are in order of their source rank. NumPy's ``default_rng(seed)``: permutation first, then the keys token by
    token, so a layer's routing depends on its own entry alone.
    """
    generator = np.random.default_rng(seed)
    place = generator.permutation(experts)
    log_weight = -exponent * np.log1p(place)
    count = ranks * tokens_per_rank
    ids = np.empty((count, top_k), np.int32)
    rows = max(1, CHUNK_NUMBERS // experts)
    for first in range(0, count, rows):
        keys = generator.gumbel(size=(min(rows, count - first), experts)) + log_weight
        chosen = np.argpartition(keys, experts - top_k, axis=1)[:, experts - top_k :]
        ids[first : first + rows] = np.sort(chosen, axis=1)
    return Tokens(ids, np.repeat(np.arange(ranks, dtype=np.int32), tokens_per_rank))
