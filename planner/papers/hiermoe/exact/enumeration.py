"""Every placement of a tiny layer in turn: what proves loads and replicas, and the referee of the exact model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement

import numpy as np

from planner.papers.hiermoe.instance import Case, Table

MOST_TABLES = 3_000
"""Placements that are tried: about a second."""


def is_tiny(case: Case, *, most: int = MOST_TABLES) -> bool:
    """Whether all placements are few enough to be tried (without renaming: an upper bound on their number)."""
    slots, choices = case.slots, 1
    if case.P == case.E:
        for rank in range(case.G):
            choices *= math.comb(case.E - rank * slots, slots)
            if choices > most:
                return False
        return True
    apart = case.problem.forbid_same_rank_replicas
    of_rank = math.comb(case.E, slots) if apart else math.comb(case.E + slots - 1, slots)
    return of_rank <= most and case.G * math.log(max(1, of_rank)) <= math.log(most) + 1e-9


def tables(case: Case, *, renamed: bool) -> Iterator[Table]:
    """Every placement, each rank's experts ascending. ``renamed``: only one of those that differ in names of groups.

    Such a one has the groups of each parent in the order of their smallest experts; there are no replicas then.
    """
    if case.P > case.E:
        yield from _with_replicas(case)
        return
    sizes = [case.G // groups for groups in case.U] + [1]
    before = [_sibling(rank, sizes) if renamed else None for rank in range(case.G)]
    chosen: list[tuple[int, ...]] = []

    def visit(left: tuple[int, ...]) -> Iterator[Table]:
        rank = len(chosen)
        if rank == case.G:
            yield np.array(chosen, dtype=np.int64).ravel()
            return
        sibling = before[rank]
        for experts in combinations(left, case.slots):
            if renamed and (experts[0] != 0 if sibling is None else experts[0] < chosen[sibling][0]):
                continue
            chosen.append(experts)
            yield from visit(tuple(e for e in left if e not in experts))
            chosen.pop()

    yield from visit(tuple(range(case.E)))


def _sibling(rank: int, sizes: list[int]) -> int | None:
    """The first rank of the group before the one that a rank starts, inside the same parent; None for rank 0."""
    for size in sizes:
        if rank % size == 0 and rank:
            return rank - size
    return None


def _with_replicas(case: Case) -> Iterator[Table]:
    choose = combinations if case.problem.forbid_same_rank_replicas else combinations_with_replacement
    options = list(choose(range(case.E), case.slots))
    chosen: list[tuple[int, ...]] = []

    def visit() -> Iterator[Table]:
        if len(chosen) == case.G:
            if len({e for experts in chosen for e in experts}) == case.E:
                yield np.array(chosen, dtype=np.int64).ravel()
            return
        for experts in options:
            chosen.append(experts)
            yield from visit()
            chosen.pop()

    yield from visit()
