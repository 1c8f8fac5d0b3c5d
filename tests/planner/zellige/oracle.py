"""The referee: the least (T, K) by trying every placement. For at most 4 ranks and 6 sequences."""

from __future__ import annotations

import math

from planner.papers.zellige.instance import Instance

Option = tuple[float, float, int, tuple[int, ...]]


def best_by_enumeration(instance: Instance, *, disjoint: bool = False) -> tuple[float, int] | None:
    """Least makespan, then least number of splits; None when nothing fits in memory. Prices must add up exactly."""
    sequences: list[tuple[int, list[Option]]] = []
    for index, kind in enumerate(instance.kinds):
        options = [
            (mode.time_s, mode.memory_bytes, int(mode.degree > 1), ranks)
            for mode in kind.modes
            for ranks in instance.blocks[mode.config]
        ]
        sequences += [(index, options)] * kind.count
    best = (math.inf, 0)
    time, memory = [0.0] * instance.num_ranks, [0.0] * instance.num_ranks
    chosen: list[Option] = []

    def visit(position: int, splits: int, first: int) -> None:
        nonlocal best
        if (max(time), splits) >= best:
            return
        if position == len(sequences):
            best = (max(time), splits)
            return
        kind, options = sequences[position]
        # Members of a kind are alike: only non-descending choices differ.
        after = position + 1 < len(sequences) and sequences[position + 1][0] == kind
        for number in range(first, len(options)):
            p, m, split, ranks = options[number]
            if any(memory[rank] + m > instance.memory_cap_bytes for rank in ranks):
                continue
            if disjoint and any(set(ranks) & set(other[3]) and ranks != other[3] for other in chosen):
                continue
            for rank in ranks:
                time[rank] += p
                memory[rank] += m
            chosen.append(options[number])
            visit(position + 1, splits + split, number if after else 0)
            chosen.pop()
            for rank in ranks:
                time[rank] -= p
                memory[rank] -= m

    visit(0, 0, 0)
    return None if math.isinf(best[0]) else best
