"""Filler packing by the headroom rule (page 4.3), on counts: thousands of equal sequences cost one threshold search."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from planner.papers.zellige.instance import Instance, Mode, Piece

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


class Rule(StrEnum):
    """How headroom weighs memory against time.

    TIME ignores memory while it lasts; MATCHED measures memory in the seconds of average filler that it holds, so a
    rank runs out of both at once; HEADROOM is the page's (10), memory relative to the cap.
    """

    TIME = "time"
    MATCHED = "matched"
    HEADROOM = "headroom"


def pack_fillers(
    instance: Instance, fillers: Mapping[int, Mode], ledger: Floats, *, rule: Rule, level_s: float = math.inf
) -> tuple[dict[Piece, int], dict[int, int]]:
    """Place every kind in its mode, by degree and then price descending; ``ledger`` is updated.

    Split sequences fill up blocks to ``level_s``, as their ranks carry the same; what is left of them stays whole.

    Each sequence goes to the rank (at a degree above 1, to the block) with the most headroom under the rule, among
    those with memory for it, ties to the lowest. Returns the pieces, and per kind how many found no memory.
    """
    num_ranks, cap = instance.num_ranks, instance.memory_cap_bytes
    work = sum(instance.kinds[index].count * mode.work_s for index, mode in fillers.items())
    mean_s = max((float(ledger[0].sum()) + work) / num_ranks, 1e-300)
    filler_bytes = sum(instance.kinds[i].count * mode.degree * mode.memory_bytes for i, mode in fillers.items())
    matched = mean_s * filler_bytes / max(work, 1e-300)
    scale = {Rule.TIME: math.inf, Rule.HEADROOM: cap, Rule.MATCHED: matched or math.inf}[rule]
    placed: dict[Piece, int] = {}
    left: dict[int, int] = {}
    waiting = [(index, mode, instance.kinds[index].count) for index, mode in fillers.items()]
    waiting.sort(key=lambda task: (task[1].degree, task[1].time_s, -task[0]))
    while waiting:
        index, mode, count = waiting.pop()
        kind = instance.kinds[index]
        blocks = instance.blocks[mode.config]
        sets = np.array(blocks, dtype=np.intp)
        busiest: Floats = ledger[:, sets].max(axis=2)
        if mode.degree > 1 and kind.whole is not None and math.isfinite(level_s):
            room = int(np.floor(np.maximum(level_s - busiest[0], 0.0) / mode.time_s).sum())
            if room < count:
                waiting.append((index, kind.whole, count - room))
                waiting.sort(key=lambda task: (task[1].degree, task[1].time_s, -task[0]))
                count = room
        counts = spread(busiest, mode, count, mean_s, cap, memory_scale=scale)
        number = kind.modes.index(mode)
        used = np.flatnonzero(counts)
        for block in used:
            piece = Piece(index, number, blocks[block])
            placed[piece] = placed.get(piece, 0) + int(counts[block])
        # Sets of one mode are disjoint, so that each rank is added to once.
        ledger[0, sets[used].ravel()] += np.repeat(counts[used] * mode.time_s, mode.degree)
        ledger[1, sets[used].ravel()] += np.repeat(counts[used] * mode.memory_bytes, mode.degree)
        if (missing := count - int(counts.sum())) > 0:
            left[index] = left.get(index, 0) + missing
    return placed, left


def spread(ledger: Floats, mode: Mode, count: int, mean_s: float, cap_bytes: float, *, memory_scale: float) -> Counts:
    """How many of ``count`` equal sequences the headroom rule gives each rank, a column of ``ledger``.

    The sum is less when memory runs out.

    The j-th sequence on rank r has headroom min((F - C_r - jp)/F, (M_cap - M_r - jm)/``memory_scale``), falling in
    j, so the rule takes the ``count`` largest values: a threshold is searched, the last few are dealt one by one.
    """
    num_ranks = ledger.shape[1]
    time_room = mean_s - ledger[0]
    memory_room = cap_bytes - ledger[1]
    p, m = mode.time_s, mode.memory_bytes
    # A relative grain keeps a rank that is exactly full from being refused by the last bit of a sum.
    grain = cap_bytes * 1e-12
    most = np.full(num_ranks, count) if m == 0 else np.clip(np.floor((memory_room + grain) / m), 0, count)
    if math.isinf(memory_scale):
        m, memory_room, memory_scale = 0.0, np.full(num_ranks, np.inf), 1.0

    def taken(headroom: float) -> Floats:
        by_time: Floats = np.floor((time_room - headroom * mean_s) / p)
        if m > 0:
            by_time = np.minimum(by_time, np.floor((memory_room - headroom * memory_scale) / m))
        clipped: Floats = np.clip(by_time, 0, most)
        return clipped

    if float(most.sum()) <= count:
        return most.astype(np.int64)
    counts = np.zeros(num_ranks)
    if count > 4:
        high = 1.0
        low = min(float(time_room.min()) - (count + 1) * p, 0.0) / mean_s - (count + 1) * m / memory_scale - 1.0
        for _ in range(60):
            middle = (low + high) / 2
            trial = taken(middle)
            total = float(trial.sum())
            if total <= count:
                high, counts = middle, trial
                if count - total <= 8:
                    break
            else:
                low = middle
    left = count - int(counts.sum())
    result = counts.astype(np.int64)
    if left:
        _deal(result, left, time_room / mean_s, p / mean_s, memory_room / memory_scale, m / memory_scale, most)
    return result


def _deal(counts: Counts, left: int, time_room: Floats, p: float, memory_room: Floats, m: float, most: Floats) -> None:
    """Deal the last sequences one by one; rooms and prices are relative to F and the memory scale."""
    headroom = np.minimum(time_room - (counts + 1) * p, memory_room - (counts + 1) * m)
    headroom[counts >= most] = -np.inf
    nearest = np.argsort(-headroom, kind="stable")[: left + 1].tolist()
    heap = [(-float(headroom[rank]), rank) for rank in nearest if headroom[rank] > -np.inf]
    heapq.heapify(heap)
    while left and heap:
        _, rank = heap[0]
        counts[rank] += 1
        left -= 1
        if counts[rank] < most[rank]:
            following = counts[rank] + 1
            value = min(time_room[rank] - following * p, memory_room[rank] - following * m)
            heapq.heapreplace(heap, (-float(value), rank))
        else:
            heapq.heappop(heap)
