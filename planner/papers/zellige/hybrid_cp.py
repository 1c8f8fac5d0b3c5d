"""The Megatron-LM hybrid context-parallel baseline: the least power-of-two degree that fits (page section 5)."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from planner.papers.zellige.instance import Instance, Kind, Piece
from planner.papers.zellige.longest_first import (
    MEMORY_TOLERANCE,
    Candidate,
    best,
    failed,
    least_makespan_s,
    legal_blocks,
)
from planner.papers.zellige.spread import memory_room, spread

NAME = "hybrid_cp"


def hybrid_cp(instance: Instance, below_s: float = math.inf) -> Candidate:
    """Degree of a sequence = the smallest power of two at which it fits alone, then longest first.

    "Disjoint groups" is read as: the aligned blocks of one degree. Each sequence goes to the block of its degree whose
    busiest rank is least loaded and that has the memory; sequences of other degrees may share those ranks.
    """
    chosen: list[int] = []
    for kind in instance.kinds:
        least = _least_power_of_two(instance, kind)
        if least is None:
            return failed(NAME, f'"{kind.sequence_ids[0]}" has no usable option of a power-of-two degree')
        chosen.append(least)
    return best(instance, NAME, [(least_makespan_s(instance, chosen), partial(_place, instance, chosen))], below_s)


def _place(instance: Instance, chosen: list[int]) -> Candidate:
    cap = instance.memory_cap_bytes * (1 + MEMORY_TOLERANCE)
    time_s, memory_bytes = np.zeros(instance.num_ranks), np.zeros(instance.num_ranks)
    ranks_of: dict[int, np.ndarray[tuple[int, int], np.dtype[np.int64]]] = {}
    placement: dict[Piece, int] = {}
    modes = [kind.modes[m] for kind, m in zip(instance.kinds, chosen, strict=True)]
    for index in sorted(range(len(modes)), key=lambda i: -modes[i].time_s):
        mode, count = modes[index], instance.kinds[index].count
        blocks = legal_blocks(instance, mode)
        if mode.config not in ranks_of:
            ranks_of[mode.config] = np.array(blocks, dtype=np.int64)
        ranks = ranks_of[mode.config]
        levels = time_s[ranks].max(axis=1)
        used = memory_bytes[ranks].max(axis=1)
        if count == 1:
            levels[used + mode.memory_bytes > cap] = np.inf
            lowest = int(levels.argmin())
            taken = {lowest: 1} if np.isfinite(levels[lowest]) else {}
            placed = len(taken)
        else:
            room = memory_room(count, cap, mode.memory_bytes, used.tolist())
            counts = spread(count, [mode.time_s] * len(blocks), levels.tolist(), room)
            taken = {b: n for b, n in enumerate(counts) if n}
            placed = sum(counts)
        if placed < count:
            return failed(NAME, f'no memory left for "{instance.kinds[index].sequence_ids[placed]}"')
        placement.update({Piece(index, chosen[index], blocks[b]): n for b, n in taken.items()})
        filled, number = ranks[list(taken)], np.array(list(taken.values()))[:, None]
        time_s[filled] += number * mode.time_s
        memory_bytes[filled] += number * mode.memory_bytes
    return Candidate(NAME, placement, float(time_s.max()), True, "")


def _least_power_of_two(instance: Instance, kind: Kind) -> int | None:
    for m, mode in enumerate(kind.modes):
        if mode.degree & (mode.degree - 1) == 0 and legal_blocks(instance, mode):
            return m
    return None
