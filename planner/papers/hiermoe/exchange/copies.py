"""Which rank serves a token of a source rank: with replicas the nearest copy (page, "Replicas")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.exchange.hops import ranks_of_slots
from planner.papers.hiermoe.instance import Case, Table


def copies_of(case: Case, table: Table) -> NDArray[np.int64]:
    """int64 [E]: slots that hold each expert."""
    return np.bincount(table, minlength=case.E)


def serving_ranks(case: Case, table: Table) -> NDArray[np.int32]:
    """int32 [G, E]: where source rank s sends a token for expert e."""
    return (serving_slots(case, table) // case.slots).astype(np.int32)


def serving_slots(case: Case, table: Table) -> NDArray[np.int64]:
    """int64 [G, E]: the slot that serves source rank s for expert e.

    The copy that shares the deepest level with s; of m such copies, slots ascending, number s mod m.
    """
    served = np.zeros((case.G, case.E), dtype=np.int64)
    rank = ranks_of_slots(case)
    served[:, table] = np.arange(case.P)
    order = np.argsort(table, kind="stable")
    expert = table[order]
    several = copies_of(case, table)[expert] > 1
    order, expert = order[several], expert[several]
    if not len(order):
        return served
    source = np.arange(case.G)
    first = np.flatnonzero(np.concatenate(([True], expert[1:] != expert[:-1])))
    which = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(expert))))
    place = rank[order]
    shared = _shared_levels(case, place, source)
    nearest = shared == np.maximum.reduceat(shared, first)[which]
    many = np.add.reduceat(nearest, first, dtype=np.int32)
    before = np.cumsum(nearest, axis=0, dtype=np.int32)
    number = before - 1 - np.where(first[:, None] > 0, before[first - 1], 0)[which]
    chosen = nearest & (number == (source % many)[which])
    slot, sender = np.nonzero(chosen)
    served[sender, expert[slot]] = order[slot]
    return served


def _shared_levels(case: Case, place: NDArray[np.int64], source: NDArray[np.int64]) -> NDArray[np.int8]:
    """int8 [slots, G]: how many levels, the rank itself the deepest, a slot's rank has in common with each source."""
    shared = np.zeros((len(place), len(source)), dtype=np.int8)
    for groups in (*case.U[1:], case.G):
        size = case.G // groups
        shared += place[:, None] // size == source // size
    return shared
