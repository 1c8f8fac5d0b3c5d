"""Equal placements: groups and ranks renamed inside their parents, so that least has to move.

Without replicas eq. 3 counts by what is placed together, not by where: any renaming that keeps together the groups of
the levels an exchange uses costs the same. The names are matched from the ranks upwards, each parent by assignment.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.exchange.tables import ascending
from planner.papers.hiermoe.instance import Table

Array = NDArray[np.int64]

FEW_CHILDREN = 4
"""Up to so many children a parent, all their orders are tried."""


def least_moved(current: Table, table: Table, groups: tuple[int, ...], ranks: int) -> Table:
    """The renamed table that keeps most experts on their ranks; ``groups`` U[0..d-1] are the levels to keep whole."""
    slots = len(table) // ranks
    rank_now = np.empty(len(table), dtype=np.int64)
    rank_now[current] = np.arange(len(table)) // slots
    kept = np.zeros((ranks, ranks), dtype=np.int64)
    np.add.at(kept, (np.arange(len(table)) // slots, rank_now[table]), 1)
    matched = []
    for parents in reversed(groups):
        kept, name = _match_children(kept, parents)
        matched.append(name)
    place = np.zeros(1, dtype=np.int64)
    for name in reversed(matched):
        parents, size = len(name), name.shape[2]
        place = (place[:, None] * size + name[np.arange(parents), place]).ravel()
    rows = np.empty((ranks, slots), dtype=np.int64)
    rows[place] = table.reshape(ranks, slots)
    return ascending(rows.ravel(), ranks)


def _match_children(kept: Array, parents: int) -> tuple[Array, Array]:
    """Experts kept [parents, parents], and each child's name [.., children], if one parent took another's place."""
    size = len(kept) // parents
    blocks = kept.reshape(parents, size, parents, size).transpose(0, 2, 1, 3)
    if size <= FEW_CHILDREN:
        orders = np.array(list(permutations(range(size))))
        each = blocks[:, :, np.arange(size), orders].sum(axis=3)
        return each.max(axis=2), orders[each.argmax(axis=2)]
    best = np.zeros((parents, parents), dtype=np.int64)
    name = np.zeros((parents, parents, size), dtype=np.int64)
    for one, other in np.ndindex(parents, parents):
        name[one, other] = _assigned(blocks[one, other])
        best[one, other] = blocks[one, other][np.arange(size), name[one, other]].sum()
    return best, name


def _assigned(kept: Array) -> list[int]:
    """The column of each row, all different, with the largest sum."""
    from ortools.graph.python.linear_sum_assignment import (  # type: ignore[import-untyped]
        SimpleLinearSumAssignment,
    )

    assignment = SimpleLinearSumAssignment()
    rows, columns = np.indices(kept.shape)
    assignment.add_arcs_with_cost(rows.ravel(), columns.ravel(), -kept.ravel())
    assignment.solve()
    return [assignment.right_mate(row) for row in range(len(kept))]
