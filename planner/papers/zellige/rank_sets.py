"""Which ranks may share a sequence (page section 3): aligned blocks, subsets of a node, or the user's own list."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

from planner.errors import BadInputError
from planner.papers.zellige.problem import Config, ZelligeProblem

MAX_NODE_LOCAL_SETS = 100_000
"""``node_local`` is exponential; beyond this many sets the request is refused, not attempted."""


@lru_cache(maxsize=256)
def aligned_blocks(num_ranks: int, node_size: int, degree: int) -> tuple[tuple[int, ...], ...]:
    """Blocks of consecutive ranks: inside each node up to its size, whole consecutive nodes above it.

    A node's tail ranks carry no block of a degree that does not divide it; a degree above the node that is no
    multiple of it has no block at all.
    """
    if degree <= node_size:
        starts = [
            node + offset
            for node in range(0, num_ranks, node_size)
            for offset in range(0, node_size - degree + 1, degree)
        ]
    elif degree % node_size == 0:
        starts = list(range(0, num_ranks - degree + 1, degree))
    else:
        starts = []
    return tuple(tuple(range(start, start + degree)) for start in starts)


def rank_sets(problem: ZelligeProblem, config: Config) -> tuple[tuple[int, ...], ...]:
    """All legal rank sets of one configuration, ascending. May be empty. Raises BadInputError (too_large)."""
    cluster = problem.cluster
    if problem.rank_sets.policy == "explicit":
        listed = (problem.rank_sets.sets or {}).get(config.id)
        if listed is None:
            return tuple((rank,) for rank in range(cluster.num_ranks)) if config.degree == 1 else ()
        return tuple(sorted(listed))
    if problem.rank_sets.policy == "node_local":
        return _node_local_sets(cluster.num_ranks, cluster.node_size, config.degree)
    return aligned_blocks(cluster.num_ranks, cluster.node_size, config.degree)


def _node_local_sets(num_ranks: int, node_size: int, degree: int) -> tuple[tuple[int, ...], ...]:
    nodes = num_ranks // node_size
    if degree > node_size and degree % node_size:
        return ()
    pool, chosen = (node_size, degree) if degree <= node_size else (nodes, degree // node_size)
    count = math.comb(pool, chosen) * (nodes if degree <= node_size else 1)
    if count > MAX_NODE_LOCAL_SETS:
        raise BadInputError(
            f"policy node_local has {count} rank sets of degree {degree}, more than {MAX_NODE_LOCAL_SETS}; use aligned",
            code="too_large",
            where="rank_sets.policy",
        )
    if degree <= node_size:
        return tuple(
            ranks
            for first in range(0, num_ranks, node_size)
            for ranks in itertools.combinations(range(first, first + node_size), degree)
        )
    return tuple(
        tuple(rank for node in picked for rank in range(node * node_size, (node + 1) * node_size))
        for picked in itertools.combinations(range(nodes), chosen)
    )
