"""The problem in the form every engine works on: equivalent sequences merged, options against legal rank sets.

This is the exact compact form (page 4.2): sequences with the same options differ only by name, so engines place
counts, and names are handed out once at the end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from planner.papers.zellige.problem import ZelligeProblem
from planner.papers.zellige.rank_sets import rank_sets

Ranks = tuple[int, ...]


class Mode(NamedTuple):
    """One option of a kind that has at least one rank set and fits the memory cap."""

    config: int
    degree: int
    time_s: float
    memory_bytes: float

    @property
    def work_s(self) -> float:
        """Rank-seconds of one sequence, λp."""
        return self.degree * self.time_s


@dataclass(frozen=True)
class Kind:
    """Sequences with equal options. ``modes`` are the usable options, by degree, then work, then config.

    ``sequence_ids`` is sorted; ``whole_s`` is the page's whole price (4.1, 4.3): the time at degree 1, else the
    least work.
    """

    sequence_ids: tuple[str, ...]
    modes: tuple[Mode, ...]

    @property
    def count(self) -> int:
        """Number of sequences."""
        return len(self.sequence_ids)

    @cached_property
    def whole(self) -> Mode | None:
        """The mode of degree 1, if there is one."""
        return next((mode for mode in self.modes if mode.degree == 1), None)

    @cached_property
    def whole_s(self) -> float:
        """Whole price, or the least work where no whole mode is usable."""
        return self.whole.time_s if self.whole else min(mode.work_s for mode in self.modes)


class Piece(NamedTuple):
    """Where sequences of one kind run: mode index and rank set."""

    kind: int
    mode: int
    ranks: Ranks


Placement = Mapping[Piece, int]
"""A compact placement: how many sequences each piece carries. Every engine returns one."""


@dataclass(frozen=True)
class Instance:
    """A problem ready for the engines. ``kinds`` are sorted by whole price, then first sequence id.

    ``blocks[config]`` are the legal rank sets of a configuration, by index into ``problem.configs``.
    """

    problem: ZelligeProblem
    kinds: tuple[Kind, ...]
    blocks: tuple[tuple[Ranks, ...], ...]

    @property
    def num_ranks(self) -> int:
        """N."""
        return self.problem.cluster.num_ranks

    @property
    def node_size(self) -> int:
        """Ranks per node, g."""
        return self.problem.cluster.node_size

    @property
    def memory_cap_bytes(self) -> float:
        """M_cap."""
        return self.problem.cluster.memory_cap_bytes

    @cached_property
    def families(self) -> tuple[int, ...]:
        """For every configuration the first one with the same rank sets."""
        first: dict[tuple[Ranks, ...], int] = {}
        return tuple(first.setdefault(sets, config) for config, sets in enumerate(self.blocks))

    @cached_property
    def tiling(self) -> tuple[bool, ...]:
        """For every configuration whether its rank sets use each rank exactly once."""
        everyone = list(range(self.num_ranks))
        return tuple(sorted(rank for ranks in sets for rank in ranks) == everyone for sets in self.blocks)

    @property
    def num_sequences(self) -> int:
        """Sequences of the step."""
        return sum(kind.count for kind in self.kinds)


def compile_instance(problem: ZelligeProblem) -> Instance:
    """Merge equal groups and keep usable options. A kind left with no mode stays, with ``modes`` empty."""
    index = {config.id: position for position, config in enumerate(problem.configs)}
    blocks = tuple(rank_sets(problem, config) for config in problem.configs)
    cap = problem.cluster.memory_cap_bytes
    merged: dict[tuple[Mode, ...], list[int]] = {}
    for position, group in enumerate(problem.groups):
        modes = tuple(
            sorted(
                (
                    Mode(c, problem.configs[c].degree, option.time_s, option.memory_bytes)
                    for option in group.options
                    if blocks[c := index[option.config]] and option.memory_bytes <= cap
                ),
                key=lambda mode: (mode.degree, mode.time_s, mode.config),
            )
        )
        # Groups without any usable mode are kept apart so that a failure can name its own sequence.
        key = modes or ((Mode(-1, position, 0.0, 0.0)),)
        merged.setdefault(key, []).append(position)
    kinds = [
        Kind(
            sequence_ids=tuple(sorted(s for g in members for s in problem.groups[g].sequence_ids)),
            modes=modes if modes[0].config >= 0 else (),
        )
        for modes, members in merged.items()
    ]
    kinds.sort(key=lambda kind: (kind.whole_s if kind.modes else math.inf, kind.sequence_ids[0]))
    return Instance(problem, tuple(kinds), blocks)


def loads(instance: Instance, placement: Placement) -> tuple[list[float], list[float]]:
    """Time [s] and memory [bytes] of every rank, each an exactly rounded sum (independent of order)."""
    time: list[list[float]] = [[] for _ in range(instance.num_ranks)]
    memory: list[list[float]] = [[] for _ in range(instance.num_ranks)]
    for piece, count in placement.items():
        mode = instance.kinds[piece.kind].modes[piece.mode]
        for rank in piece.ranks:
            time[rank].append(count * mode.time_s)
            memory[rank].append(count * mode.memory_bytes)
    return [math.fsum(parts) for parts in time], [math.fsum(parts) for parts in memory]


def num_splits(instance: Instance, placement: Placement) -> int:
    """K: sequences that run on more than one rank."""
    return sum(count for piece, count in placement.items() if instance.kinds[piece.kind].modes[piece.mode].degree > 1)
