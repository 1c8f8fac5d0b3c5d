"""Greedy "lowest level first" for many equal items: the same answer as one by one, without the loop."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence


class Bins:
    """Bins alike in every way, each with a level (time, occupancy) and the memory used in it."""

    def __init__(self, number: int, memory_cap_bytes: float = math.inf) -> None:
        self.levels = [0.0] * number
        self.memory_bytes = [0.0] * number
        self._cap = memory_cap_bytes
        self._heap = [(0.0, b) for b in range(number)]

    def put(self, count: int, step: float, memory_bytes: float = 0.0) -> dict[int, int]:
        """Put equal items one after the other into the lowest bin with memory; how many each bin got.

        Fewer than ``count`` in all when no bin has memory for the next. Ties go to the lowest bin.
        """
        if 2 * count >= len(self.levels):
            taken = self._put_many(count, step, memory_bytes)
        else:
            taken = self._put_few(count, step, memory_bytes)
        return taken

    def _put_many(self, count: int, step: float, memory_bytes: float) -> dict[int, int]:
        number = len(self.levels)
        room = memory_room(count, self._cap, memory_bytes, self.memory_bytes)
        taken = spread(count, [step] * number, self.levels, room)
        for b, n in enumerate(taken):
            self.levels[b] += n * step
            self.memory_bytes[b] += n * memory_bytes
        self._heap = [(level, b) for b, level in enumerate(self.levels)]
        heapq.heapify(self._heap)
        return {b: n for b, n in enumerate(taken) if n}

    def _put_few(self, count: int, step: float, memory_bytes: float) -> dict[int, int]:
        taken: dict[int, int] = {}
        full: list[tuple[float, int]] = []
        heap = self._heap
        while count and heap:
            b = heap[0][1]
            if self.memory_bytes[b] + memory_bytes > self._cap:
                full.append(heapq.heappop(heap))
                continue
            self.levels[b] += step
            self.memory_bytes[b] += memory_bytes
            taken[b] = taken.get(b, 0) + 1
            count -= 1
            heapq.heapreplace(heap, (self.levels[b], b))
        for entry in full:
            heapq.heappush(heap, entry)
        return taken


def memory_room(count: int, cap: float, memory_bytes: float, used: Sequence[float]) -> list[int]:
    """How many of ``count`` items of this size each bin has memory for."""
    if memory_bytes == 0 or cap == math.inf:
        return [count] * len(used)
    return [int(max(0.0, min(count, (cap - held) / memory_bytes))) for held in used]


def spread(count: int, steps: Sequence[float], levels: Sequence[float], room: Sequence[int]) -> list[int]:
    """How many of ``count`` equal items each bin gets when every item goes to the lowest bin that has room.

    An item raises bin b by ``steps[b]`` > 0 from ``levels[b]``; b takes at most ``room[b]``; ties go to the lowest b.
    Gives fewer than ``count`` in all where the room runs out. The items placed are the ``count`` lowest values of
    "level before this item", so all of them below a cut are taken at once and a heap places the few left.
    """
    taken = [0] * len(levels)
    open_bins = [b for b in range(len(levels)) if room[b] > 0]
    left = count
    while True:
        bulk = _below_cut(left, steps, levels, open_bins)
        full = [b for b, n in bulk.items() if n > room[b]]
        if not full:
            break
        # Room elsewhere only shrinks, so a bin that overflows here is full in the end.
        for b in full:
            taken[b] = room[b]
            left -= room[b]
        open_bins = [b for b in open_bins if taken[b] < room[b]]
    for b, n in bulk.items():
        taken[b] = n
        left -= n
    heap = [(levels[b] + taken[b] * steps[b], b) for b in open_bins if taken[b] < room[b]]
    heapq.heapify(heap)
    while left and heap:
        b = heap[0][1]
        taken[b] += 1
        left -= 1
        if taken[b] < room[b]:
            heapq.heapreplace(heap, (levels[b] + taken[b] * steps[b], b))
        else:
            heapq.heappop(heap)
    return taken


def _below_cut(count: int, steps: Sequence[float], levels: Sequence[float], bins: list[int]) -> dict[int, int]:
    """Items whose level beforehand is below a cut that at most ``count`` items are below; only bins that get some."""
    active = bins
    cut = 0.0
    while active:
        inverse = math.fsum([1 / steps[b] for b in active])
        cut = (count - len(active) + sum([levels[b] / steps[b] for b in active])) / inverse
        kept = [b for b in active if levels[b] < cut + steps[b]]
        if len(kept) == len(active):
            break
        active = kept
    if not math.isfinite(cut):
        return {}
    bulk: dict[int, int] = {}
    for b in active:
        # Lowered by more than the rounding of the quotient: an item too few is placed by the heap.
        n = int((cut - levels[b]) / steps[b] + 1 - 1e-9 - 1e-14 * abs(cut) / steps[b])
        if n > 0:
            bulk[b] = n
    return bulk if sum(bulk.values()) <= count else {}
