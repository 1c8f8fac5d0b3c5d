"""Collectives that no machine can run: of one rank, or of ranks that do not share out over their nodes."""

from __future__ import annotations

import numpy as np

from profiles.checks.finding import Finding, count, row_words, title
from profiles.document import Table
from profiles.families import COLLECTIVES


def impossible_ranks(number: int, table: Table) -> list[Finding]:
    """An error for a collective with rows of fewer than two ranks, or of ranks that are no multiple of their nodes."""
    if table.family not in COLLECTIVES:
        return []
    nodes, ranks = (np.asarray(table.columns[axis], dtype=np.int64) for axis in ("nodes", "ranks"))
    alone = ranks < 2
    uneven = ~alone & (ranks % nodes != 0)
    found = []
    for rows, what in ((alone, "of a single rank"), (uneven, "whose ranks do not divide into nodes")):
        if rows.any():
            first = int(np.argmax(rows))
            at = f"nodes {nodes[first]}, ranks {ranks[first]} ({row_words(table, first)})"
            found.append(
                Finding(
                    "impossible_ranks",
                    "error",
                    title(table),
                    f"tables.{number}.columns.ranks.{first}",
                    f"{count(int(rows.sum()), 'row')} {what}; the first at {at}",
                    "ranks of at least 2 and a multiple of nodes",
                    "ranks counts all ranks of the collective, not those of one node: state that, or leave the row out",
                )
            )
    return found
