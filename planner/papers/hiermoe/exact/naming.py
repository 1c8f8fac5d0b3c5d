"""One name for placements that differ only in how groups are called inside their parents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def first_come(rank_of: Ints, levels: tuple[int, ...], order: Ints) -> Ints:
    """int64 [E]: the placement with the groups of each parent in the order of their first experts.

    ``levels`` are group counts from coarse to fine, ranks last; ``order`` says which expert comes first. Every
    placement has such a name, since the first expert of a group does not depend on names inside it.
    """
    G = levels[-1]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    first = np.full(G, len(order), dtype=np.int64)
    np.minimum.at(first, rank_of, place)
    blocks = [([rank], int(first[rank])) for rank in range(G)]
    for parents in (*levels[-2::-1], 1):
        size = len(blocks) // parents
        merged = []
        for parent in range(parents):
            children = sorted(blocks[parent * size : (parent + 1) * size], key=lambda child: child[1])
            merged.append(([rank for ranks, _ in children for rank in ranks], children[0][1]))
        blocks = merged
    name = np.empty(G, dtype=np.int64)
    name[blocks[0][0]] = np.arange(G)
    return name[rank_of]
