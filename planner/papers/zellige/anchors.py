"""The anchors of the fast engine: few large sequences, each with a choice of mode and rank set.

Fillers are treated as one divisible load here, with the memory per second they have on average, so a placement of the
anchors is worth the least makespan to which such a load fills it up: what a good filling nearly reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from planner.papers.zellige.instance import Instance, Mode, Piece
from planner.papers.zellige.rank_ledger import Ledger, Level

WASTE = 1.6
"""Modes that need more than this multiple of the least work are kept only for their time or memory."""


class Choice(NamedTuple):
    """One mode of a kind with its rank sets."""

    mode: int
    work_s: float
    time_s: float
    memory_bytes: float
    level: Level


class Seat(NamedTuple):
    """Where one anchor sits."""

    choice: Choice
    block: int


class Anchors:
    """A partial placement: the seats of the anchors and the ledger they make.

    ``fillers`` are the others by kind; kinds in ``whole`` are seated in that mode alone.
    """

    def __init__(
        self,
        instance: Instance,
        kinds: Sequence[int],
        fillers: Mapping[int, Mode],
        whole: Mapping[int, Mode],
    ) -> None:
        filler_s = sum(instance.kinds[kind].count * mode.work_s for kind, mode in fillers.items())
        filler_bytes = sum(
            instance.kinds[kind].count * mode.degree * mode.memory_bytes for kind, mode in fillers.items()
        )
        self.instance = instance
        self.items = [kind for kind in kinds for _ in range(instance.kinds[kind].count)]
        self.ledger = Ledger(
            instance.num_ranks, instance.memory_cap_bytes, filler_s, filler_bytes / filler_s if filler_s else 0.0
        )
        self.choices = {kind: self._choices(kind, whole.get(kind)) for kind in kinds}
        self.seats: list[Seat | None] = [None] * len(self.items)

    def _choices(self, kind: int, only: Mode | None) -> tuple[Choice, ...]:
        """Modes by work. Left out: modes dominated at equal degree (page 4.2), and wasteful ones.

        The fastest mode and the one of least memory stay, whatever their work.
        """
        modes = self.instance.kinds[kind].modes
        families = self.instance.families
        least = min(mode.work_s for mode in modes)
        fastest = min(range(len(modes)), key=lambda i: (modes[i].time_s, i))
        smallest = min(range(len(modes)), key=lambda i: (modes[i].memory_bytes, modes[i].time_s, i))
        kept = []
        for index, mode in enumerate(modes):
            dominated = any(
                other.degree == mode.degree
                and families[other.config] == families[mode.config]
                and other.time_s <= mode.time_s
                and other.memory_bytes <= mode.memory_bytes
                and ((other.time_s, other.memory_bytes) != (mode.time_s, mode.memory_bytes) or position < index)
                for position, other in enumerate(modes)
            )
            if only is not None and mode != only:
                continue
            if not dominated and (mode.work_s <= WASTE * least or index in (fastest, smallest)):
                level = self.ledger.level(self.instance.blocks[mode.config])
                kept.append(Choice(index, mode.work_s, mode.time_s, mode.memory_bytes, level))
        return tuple(sorted(kept, key=lambda choice: choice.work_s))

    def add(self, item: int, choice: Choice, block: int) -> None:
        """Seat an anchor."""
        self.ledger.shift(choice.level.blocks[block], choice.time_s, choice.memory_bytes)
        self.seats[item] = Seat(choice, block)

    def remove(self, item: int) -> Seat:
        """Lift an anchor from its seat."""
        seat = self.seats[item]
        assert seat is not None
        self.ledger.shift(seat.choice.level.blocks[seat.block], -seat.choice.time_s, -seat.choice.memory_bytes)
        self.seats[item] = None
        return seat

    def insert(self, item: int, choices: Sequence[Choice]) -> bool:
        """Best fit by the first choice that has a block for it; else the seat that ends earliest.

        False when memory admits none.
        """
        ledger = self.ledger
        earliest: tuple[float, Choice, int] | None = None
        for choice in choices:
            if earliest is not None and choice.time_s >= earliest[0]:
                continue
            block = ledger.best_fit(choice.level, choice.time_s, choice.memory_bytes)
            if block is not None:
                self.add(item, choice, block)
                return True
            free = ledger.earliest(choice.level, choice.memory_bytes)
            if free is not None and (earliest is None or free[0] + choice.time_s < earliest[0]):
                earliest = (free[0] + choice.time_s, choice, free[1])
        if earliest is None:
            return False
        self.add(item, earliest[1], earliest[2])
        return True

    def construct(self, target_s: float, forced: tuple[int, Choice] | None = None) -> bool:
        """Seat all anchors, most work first, one of them in a forced choice. False when memory stops one."""
        self.ledger.target_s = target_s
        self.ledger.clear()
        self.seats = [None] * len(self.items)
        order = sorted(range(len(self.items)), key=lambda item: -self.choices[self.items[item]][0].work_s)
        if forced is not None:
            order.remove(forced[0])
            if not self.insert(forced[0], [forced[1]]):
                return False
        return all(self.insert(item, self.choices[self.items[item]]) for item in order)

    def pieces(self) -> dict[Piece, int]:
        """The compact placement of the seated anchors."""
        counts: dict[Piece, int] = {}
        for kind, seat in zip(self.items, self.seats, strict=True):
            assert seat is not None
            piece = Piece(kind, seat.choice.mode, seat.choice.level.blocks[seat.block])
            counts[piece] = counts.get(piece, 0) + 1
        return counts
