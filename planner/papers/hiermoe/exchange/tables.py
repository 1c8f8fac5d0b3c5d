"""Placement tables: their canonical order, copies that share a rank, and what it takes to get from one to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from planner.papers.hiermoe.instance import Table


@dataclass(frozen=True)
class Moved:
    """Expert ``expert`` is written into ``to_slot``; ``from_slot`` holds it now, on the nearest slot number below."""

    expert: int
    to_slot: int
    from_slot: int | None


def ascending(table: Table, ranks: int) -> Table:
    """The table with each rank's experts in ascending order."""
    return np.sort(table.reshape(ranks, -1), axis=1).ravel()


def changed(table: Table, changes: Iterable[tuple[int, int]]) -> Table:
    """A copy of the table in which each (slot, expert) is written."""
    table = table.copy()
    for slot, expert in changes:
        table[slot] = expert
    return table


def crowded_slots(table: Table, ranks: int) -> list[int]:
    """Slots whose expert another, lower slot of the same rank already has."""
    rows = table.reshape(ranks, -1)
    order = np.argsort(rows, axis=1, kind="stable")
    ranked = np.take_along_axis(rows, order, axis=1)
    again = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(again, order[:, 1:], ranked[:, 1:] == ranked[:, :-1], axis=1)
    return np.flatnonzero(again.ravel()).tolist()


def moved_count(current: Table, table: Table, ranks: int) -> int:
    """How many (expert, rank) places of the table the current placement does not have."""
    size = max(int(current.max()), int(table.max())) + 1
    rank = np.arange(len(table)) // (len(table) // ranks)
    now = np.bincount(rank * size + current, minlength=ranks * size)
    then = np.bincount(rank * size + table, minlength=ranks * size)
    return int(np.maximum(then - now, 0).sum())


def moves(current: Table, table: Table, ranks: int) -> list[Moved]:
    """The weights to write, by slot. What a rank already holds stays there, whatever its slot was."""
    slots = len(table) // ranks
    holder: dict[int, int] = {}
    for slot, expert in enumerate(current.tolist()):
        holder.setdefault(expert, slot)
    found = []
    for first in range(0, len(table), slots):
        held = Counter(current[first : first + slots].tolist())
        for slot, expert in enumerate(table[first : first + slots].tolist(), first):
            if held[expert]:
                held[expert] -= 1
            else:
                found.append(Moved(expert, slot, holder.get(expert)))
    return found


def swaps_between(current: Table, table: Table, ranks: int) -> list[tuple[int, int]]:
    """Swaps of two experts that lead from one placement to the other, slots within a rank aside. No replicas.

    Each brings at least one expert to its rank, two wherever a swap can.
    """
    slots = len(table) // ranks
    at = np.empty(len(table), dtype=np.int64)
    goal = np.empty(len(table), dtype=np.int64)
    at[current] = goal[table] = np.arange(len(table)) // slots
    found = []

    def swap(one: int, other: int) -> None:
        at[one], at[other] = at[other], at[one]
        found.append((min(one, other), max(one, other)))

    for expert in range(len(table)):
        back = np.flatnonzero((at == goal[expert]) & (goal == at[expert]))
        if at[expert] != goal[expert] and len(back):
            swap(expert, int(back[0]))
    for expert in range(len(table)):
        while at[expert] != goal[expert]:
            leaving = np.flatnonzero((at == goal[expert]) & (goal != at))
            swap(expert, int(leaving[0]))
    return found
