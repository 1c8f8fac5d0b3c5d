"""The claim that no swap helps, tried out: every pair of slots on different ranks, for up to 64 slots."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.checks.counts import (
    TOLERANCE,
    Floats,
    Ints,
    Recount,
    Step,
    destinations,
    price,
    recount,
)
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.routing.routed import Routed, Tokens

MOST_SLOTS = 64
MOST_WORK = 2**29
"""Distinct tokens times pairs of slots; a claim over more is not tried out."""

Masks = NDArray[np.uint64]
Allowed = Callable[[Ints], bool]
"""Whether a table keeps the move budget."""


def better_swap(
    problem: HiermoeProblem, routed: Routed, table: Ints, reached: Recount, d: int, allowed: Allowed
) -> tuple[int, int, float] | None:
    """The first pair of slots whose exchange lowers equation 5 by more than 1e-9, with what it gives [s]; None if none.

    Exchanges that break the load limit, the move budget, or the rule against two copies on a rank do not count.
    """
    P, G = len(table), problem.topology.gpus
    if P > MOST_SLOTS:
        return None
    evaluate: Callable[[Ints], Recount | None]
    if isinstance(routed, Tokens):
        rows = _rows(routed)
        if len(rows.mask) * P * (P - 1) // 2 > MOST_WORK:
            return None
        evaluate = _Swaps.of(problem, rows, table, reached).evaluate
    else:
        evaluate = lambda swapped: recount(problem, routed, swapped, d)  # noqa: E731
    for a, b in combinations(range(P), 2):
        if a * G // P == b * G // P or table[a] == table[b]:
            continue
        swapped = table.copy()
        swapped[a], swapped[b] = table[b], table[a]
        if _crowded(problem, swapped, (a * G // P, b * G // P)):
            continue
        found = evaluate(swapped)
        if found is None or found.objective_s >= reached.objective_s * (1 - TOLERANCE):
            continue
        if not over_ratio(problem, found) and allowed(swapped):
            return a, b, found.objective_s
    return None


def over_ratio(problem: HiermoeProblem, found: Recount) -> bool:
    """Whether the busiest rank is over the limit on its load."""
    most = problem.search.max_load_ratio
    return most is not None and found.peak_load > most * found.mean_load * (1 + TOLERANCE)


def _crowded(problem: HiermoeProblem, table: Ints, ranks: tuple[int, int]) -> bool:
    by_rank = table.reshape(problem.topology.gpus, -1)
    return problem.forbid_same_rank_replicas and any(len(set(by_rank[r].tolist())) < by_rank.shape[1] for r in ranks)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Distinct tokens: ``source``, the set of experts as bits of ``mask``, and how many there are of each."""

    source: Ints
    mask: Masks
    weight: Ints


def _rows(routed: Tokens) -> _Rows:
    mask = np.zeros(len(routed.source), dtype=np.uint64)
    for column in routed.expert_ids.T:
        mask |= np.uint64(1) << column.astype(np.uint64)
    order = np.lexsort((mask, routed.source))
    source, mask = routed.source[order].astype(np.int64), mask[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (source[1:] != source[:-1]) | (mask[1:] != mask[:-1])
    starts = np.flatnonzero(first)
    return _Rows(source[starts], mask[starts], np.diff(np.append(starts, len(order))))


@dataclass(frozen=True, eq=False)
class _Swaps:
    """Counts of one placement, so that for a neighbour only groups whose experts change are counted again.

    ``masks`` and ``tops`` are by step: what each source reaches in each group, and the largest count of each group.
    """

    problem: HiermoeProblem
    rows: _Rows
    reached: Recount
    sent: Floats
    masks: tuple[Masks, ...]
    tops: tuple[Ints, ...]

    @classmethod
    def of(cls, problem: HiermoeProblem, rows: _Rows, table: Ints, reached: Recount) -> _Swaps:
        G, E = problem.topology.gpus, problem.num_experts
        bits = rows.mask[:, None] >> np.arange(E, dtype=np.uint64) & np.uint64(1)
        sent = np.zeros((G, E))
        for source in range(G):
            here = rows.source == source
            sent[source] = rows.weight[here] @ bits[here].astype(np.int64)
        reach = destinations(problem, table)
        masks = tuple(_masks(reach, G // hop.groups, hop.groups) for hop in reached.steps)
        empty = cls(problem, rows, reached, sent, masks, ())
        tops = tuple(
            np.array([empty._top(hop, mask[:, b]) for b in range(hop.groups)], dtype=np.int64)
            for hop, mask in zip(reached.steps, masks, strict=True)
        )
        return dataclasses.replace(empty, tops=tops)

    def evaluate(self, table: Ints) -> Recount | None:
        """The neighbour's recount; None if no peak of the exchange, nor the peak load, can have fallen."""
        G = self.problem.topology.gpus
        reach = destinations(self.problem, table)
        sent = self.sent if len(reach) == G else self.sent.sum(axis=0)
        load = float(np.bincount(reach.ravel(), weights=sent.ravel(), minlength=G).max())
        masks = [_masks(reach, G // hop.groups, hop.groups) for hop in self.reached.steps]
        changed = [(old != new).any(axis=0) for old, new in zip(self.masks, masks, strict=True)]
        lower = any(bool(new[top == top.max()].all()) for new, top in zip(changed, self.tops, strict=True))
        if not lower and load >= self.reached.peak_load:
            return None
        peaks = []
        for hop, mask, new, top in zip(self.reached.steps, masks, changed, self.tops, strict=True):
            kept = int(top[~new].max(initial=0))
            peaks.append(float(max([kept, *(self._top(hop, mask[:, b]) for b in np.flatnonzero(new))])))
        return price(self.problem, self.reached.steps, tuple(peaks), load, self.reached.mean_load)

    def _top(self, hop: Step, mask: Masks) -> int:
        """The most tokens that holders of one class send to a group; ``mask`` by source, or one for all."""
        rows = self.rows
        there = (rows.mask & mask[rows.source % len(mask)]) != 0
        sums = np.bincount(rows.source[there] % hop.classes, weights=rows.weight[there], minlength=1)
        return int(sums.max())


def _masks(reach: Ints, size: int, groups: int) -> Masks:
    """uint64 [sources, groups]: the experts, as bits, for which a source sends to each group."""
    masks = np.zeros((len(reach), groups), dtype=np.uint64)
    bits = np.broadcast_to(np.uint64(1) << np.arange(reach.shape[1], dtype=np.uint64), reach.shape)
    # Bits of different experts: their sum is their union.
    np.add.at(masks, (np.arange(len(reach))[:, None], reach // size), bits)
    return masks
