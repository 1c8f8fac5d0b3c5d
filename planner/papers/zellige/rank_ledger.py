"""Ledgers of time and memory per rank, with the fullest rank of every block kept in order for best-fit queries."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from typing import NamedTuple

from planner.papers.zellige.instance import Ranks

_LOOK = 16
"""So many of the fullest and of the emptiest blocks are weighed against each other by what they strand."""
_FEW = 64
"""A level of at most this many blocks is computed when asked: cheaper than keeping it in order."""


class Level:
    """The rank sets of one family (all aligned blocks of one degree) with the time of the busiest rank of each.

    ``order`` holds (busiest time, block) ascending. A ``kept`` level is updated with every change; another one is
    computed when asked, once per ``version`` of the ledger.
    """

    def __init__(self, blocks: tuple[Ranks, ...], num_ranks: int) -> None:
        self.blocks = blocks
        self.kept = len(blocks) > _FEW
        consecutive = all(ranks[-1] - ranks[0] == len(ranks) - 1 for ranks in blocks)
        self.ends = [(ranks[0], ranks[-1] + 1) for ranks in blocks] if consecutive else None
        self.singles = blocks == tuple((rank,) for rank in range(num_ranks))
        self.of_rank: list[list[int]] = [[] for _ in range(num_ranks)]
        for index, ranks in enumerate(blocks):
            for rank in ranks:
                self.of_rank[rank].append(index)
        self.touched: dict[Ranks, tuple[int, ...]] = {}
        self.start: list[float] = []
        self.order: list[tuple[float, int]] = []
        self.version = -1

    def refresh(self, load_s: list[float], version: int) -> None:
        """Recompute every block; the order is made when somebody asks for it."""
        if self.singles:
            self.start = load_s[:]
        elif self.ends is not None:
            self.start = [max(load_s[first:end]) for first, end in self.ends]
        else:
            self.start = [max([load_s[rank] for rank in ranks]) for ranks in self.blocks]
        self.order = sorted(zip(self.start, range(len(self.blocks)), strict=True)) if self.kept else []
        self.version = version

    def most(self, block: int, amounts: list[float]) -> float:
        """The largest amount on a rank of the block."""
        if self.ends is not None:
            first, end = self.ends[block]
            return max(amounts[first:end])
        return max([amounts[rank] for rank in self.blocks[block]])

    def touching(self, ranks: Ranks) -> tuple[int, ...]:
        """Blocks that share a rank with a set."""
        found = self.touched.get(ranks)
        if found is None:
            found = self.touched[ranks] = tuple(sorted({index for rank in ranks for index in self.of_rank[rank]}))
        return found


class Snapshot(NamedTuple):
    """Everything needed to return to a state."""

    load_s: list[float]
    memory_bytes: list[float]
    above_s: list[float]
    fill_s: list[float]
    sums: tuple[float, float]
    levels: list[tuple[list[float], list[tuple[float, int]]]]


class Ledger:
    """Time and memory of every rank under a target makespan.

    Fillers are one divisible load of ``filler_s`` seconds with ``filler_bytes_per_s`` bytes a second. ``above_s`` are
    every rank's seconds above the target, ``fill_s`` the filler seconds that still fit below it. ``mind_memory``
    makes best fit weigh what a choice strands of one resource for lack of the other.
    """

    def __init__(self, num_ranks: int, cap_bytes: float, filler_s: float, filler_bytes_per_s: float) -> None:
        self.num_ranks = num_ranks
        self.cap_bytes = cap_bytes
        self.filler_s = filler_s
        self.filler_bytes_per_s = filler_bytes_per_s
        self.mind_memory = False
        self.levels: list[Level] = []
        self.kept: list[Level] = []
        self.target_s = math.inf
        self.load_s = [0.0] * num_ranks
        self.memory_bytes = [0.0] * num_ranks
        self.above_s = [0.0] * num_ranks
        self.fill_s = [0.0] * num_ranks
        self.sums = (0.0, 0.0)
        self.changed: set[int] = set()
        self.version = 0

    def level(self, blocks: tuple[Ranks, ...]) -> Level:
        """The level of a set family, made on first use."""
        for level in self.levels:
            if level.blocks is blocks or level.blocks == blocks:
                return level
        made = Level(blocks, self.num_ranks)
        self.levels.append(made)
        if made.kept:
            self.kept.append(made)
        return made

    def clear(self) -> None:
        """All ranks idle; the target stays."""
        self.load_s = [0.0] * self.num_ranks
        self.memory_bytes = [0.0] * self.num_ranks
        self.version += 1
        for level in self.kept:
            level.refresh(self.load_s, self.version)
        self.aim(self.target_s)

    def aim(self, target_s: float) -> None:
        """Set the target."""
        self.target_s = target_s
        self.above_s = [max(load - target_s, 0.0) for load in self.load_s]
        self.fill_s = list(map(self._fill, self.load_s, self.memory_bytes))
        self.sums = (math.fsum(self.above_s), math.fsum(self.fill_s))
        self.changed.clear()

    def excess(self) -> float:
        """Rank-seconds that do not fit below the target: zero exactly when it is met."""
        above, fill = self.sums
        for rank in self.changed:
            over = max(self.load_s[rank] - self.target_s, 0.0)
            under = self._fill(self.load_s[rank], self.memory_bytes[rank])
            above += over - self.above_s[rank]
            fill += under - self.fill_s[rank]
            self.above_s[rank], self.fill_s[rank] = over, under
        self.changed.clear()
        self.sums = (above, fill)
        return max(0.0, above) + max(0.0, self.filler_s - fill)

    def _fill(self, load: float, memory: float) -> float:
        below = self.target_s - load
        if below <= 0:
            return 0.0
        if self.filler_bytes_per_s:
            return min(below, max(self.cap_bytes - memory, 0.0) / self.filler_bytes_per_s)
        return below

    def shift(self, ranks: Ranks, time_s: float, memory_bytes: float) -> None:
        """Add (or with negative amounts remove) time and memory on every rank of a set."""
        load, memory = self.load_s, self.memory_bytes
        for rank in ranks:
            load[rank] += time_s
            memory[rank] += memory_bytes
        self.changed.update(ranks)
        self.version += 1
        for level in self.kept:
            start, order = level.start, level.order
            for block in level.touching(ranks):
                latest = level.most(block, load)
                if latest != start[block]:
                    del order[bisect_left(order, (start[block], block))]
                    insort(order, (latest, block))
                    start[block] = latest

    def starts(self, level: Level) -> list[float]:
        """Busiest time of every block of a level."""
        if not level.kept and level.version != self.version:
            level.refresh(self.load_s, self.version)
        return level.start

    def ordered(self, level: Level) -> list[tuple[float, int]]:
        """(busiest time, block) of a level, ascending."""
        start = self.starts(level)
        if not level.order:
            level.order = sorted(zip(start, range(len(start)), strict=True))
        return level.order

    def best_fit(self, level: Level, time_s: float, memory_bytes: float) -> int | None:
        """The fullest block that still ends by the target; one that strands least, if memory is minded."""
        latest = self.target_s * (1 + 1e-12) - time_s
        room = self.cap_bytes - memory_bytes
        if not level.kept and not self.mind_memory:
            start = self.starts(level)
            eligible = [busiest for busiest in start if busiest <= latest]
            if not eligible:
                return None
            block = start.index(max(eligible))
            if level.most(block, self.memory_bytes) <= room:
                return block
        order = self.ordered(level)
        end = bisect_right(order, (latest, len(order)))
        if not self.mind_memory:
            for position in range(end - 1, -1, -1):
                block = order[position][1]
                if level.most(block, self.memory_bytes) <= room:
                    return block
            return None
        looked = order[:end] if end <= 2 * _LOOK else order[:_LOOK] + order[end - _LOOK : end]
        scores = [
            (-self._stranded(level.blocks[block], time_s, memory_bytes), busiest, block)
            for busiest, block in looked
            if level.most(block, self.memory_bytes) <= room
        ]
        return max(scores)[2] if scores else None

    def earliest(self, level: Level, memory_bytes: float) -> tuple[float, int] | None:
        """When the first block with memory is free, and which."""
        room = self.cap_bytes - memory_bytes
        if not level.kept:
            start = self.starts(level)
            busiest = min(start)
            block = start.index(busiest)
            if level.most(block, self.memory_bytes) <= room:
                return busiest, block
        for busiest, block in self.ordered(level):
            if level.most(block, self.memory_bytes) <= room:
                return busiest, block
        return None

    def _stranded(self, ranks: Ranks, time_s: float, memory_bytes: float) -> float:
        """Filler seconds that time would admit and memory would not, caused by one more sequence."""
        stranded = 0.0
        change = memory_bytes / self.filler_bytes_per_s - time_s
        for rank in ranks:
            held = (self.cap_bytes - self.memory_bytes[rank]) / self.filler_bytes_per_s
            slack = self.target_s - self.load_s[rank] - held
            stranded += max(slack + change, 0.0) - max(slack, 0.0)
        return stranded

    def is_short_of_memory(self) -> bool:
        """Whether fillers end later than time alone would let them."""
        return bool(self.filler_bytes_per_s) and self.worth() > self._level() * (1 + 1e-9)

    def _level(self) -> float:
        return max(max(self.load_s), (math.fsum(self.load_s) + self.filler_s) / self.num_ranks)

    def worth(self) -> float:
        """Makespan with divisible fillers, seconds; infinite when memory does not hold them."""
        load = self.load_s
        level = self._level()
        if not self.filler_bytes_per_s:
            return level
        room = [max(self.cap_bytes - held, 0.0) / self.filler_bytes_per_s for held in self.memory_bytes]
        if math.fsum(room) < self.filler_s:
            return math.inf
        # Ranks whose memory ends below the level drop out one after another; the others rise.
        dropped = -1
        while True:
            rising = [(a, r) for a, r in zip(load, room, strict=True) if a + r > level]
            if len(load) - len(rising) == dropped or not rising:
                return level
            dropped = len(load) - len(rising)
            fixed = math.fsum(r for a, r in zip(load, room, strict=True) if a + r <= level)
            level = max(level, (self.filler_s - fixed + math.fsum(a for a, _ in rising)) / len(rising))

    def snapshot(self) -> Snapshot:
        """A copy of the state."""
        levels = [(level.start[:], level.order[:]) for level in self.kept]
        self.excess()
        return Snapshot(self.load_s[:], self.memory_bytes[:], self.above_s[:], self.fill_s[:], self.sums, levels)

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a state, which must not be used again."""
        self.load_s, self.memory_bytes, self.above_s, self.fill_s, self.sums, levels = snapshot
        self.changed.clear()
        self.version += 1
        for level, (start, order) in zip(self.kept, levels, strict=True):
            level.start, level.order = start, order
