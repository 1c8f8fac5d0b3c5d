"""Counts and rank loads of one placement with copies, kept up to date while slots take other experts.

A change of a few slots reroutes only tokens that select an expert whose copies changed, and a count changes where such
a token leaves a group that serves it no other expert, or reaches one that served it none: exact at a small part of the
cost of counting all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.exchange.copies import serving_slots
from planner.papers.hiermoe.exchange.hops import Hop
from planner.papers.hiermoe.exchange.nearest import Nearest
from planner.papers.hiermoe.exchange.tables import changed
from planner.papers.hiermoe.instance import Case, Loads, Table, Tokens

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Held = NDArray[np.unsignedinteger]

Changes = tuple[tuple[int, int], ...]
"""(slot, expert that it takes), slots distinct."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What some changes lead to: ``counts`` [groups, classes] by hop, ``load`` [G] assignments by rank."""

    changes: Changes
    counts: tuple[Floats, ...]
    load: Floats


class TokenState:
    """The counts of eq. 3 token by token, by the copy rule of the page."""

    def __init__(self, case: Case, routed: Tokens, hops: Sequence[Hop], table: Table) -> None:
        self.case, self.hops = case, tuple(hops)
        self.ids = routed.expert_ids.astype(np.int64)
        self.source = routed.source.astype(np.int64)
        self.near = Nearest(case)
        asked = np.bincount((self.source[:, None] * case.E + self.ids).ravel(), minlength=case.G * case.E)
        self.asked = asked.reshape(case.G, case.E).astype(np.float64)
        flat = self.ids.ravel()
        self._by_expert = np.argsort(flat, kind="stable") // case.K
        self._class = [self.source % hop.classes for hop in self.hops]
        self._first = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=case.E))])
        self.restart(table)

    def restart(self, table: Table) -> None:
        """Take a whole table."""
        self.table = table.copy()
        self.slot_of = serving_slots(self.case, table)
        self.rank_of = self.slot_of // self.case.slots
        self.load = _sums(self.rank_of, self.asked, self.case.G)
        held = [self._held_by_group(hop) for hop in self.hops]
        self._held = [each.ravel() for each in held]
        self.counts = tuple(
            np.stack([_sums(self._class[n], (column > 0).astype(np.float64), hop.classes) for column in each.T])
            for n, (hop, each) in enumerate(zip(self.hops, held, strict=True))
        )

    def trial(self, changes: Changes) -> Trial:
        """Counts and loads with some slots changed; this placement stays as it is."""
        trial, rerouted = self._reroute(changes)
        for held, left, reached in reversed(rerouted):
            held[reached] -= 1
            held[left] += 1
        return trial

    def accept(self, trial: Trial) -> None:
        """Take the changes of a trial made on this very placement."""
        self._reroute(trial.changes)
        for expert, slots in self._columns(trial.changes).items():
            self.slot_of[:, expert] = slots
            self.rank_of[:, expert] = slots // self.case.slots
        self.table = changed(self.table, trial.changes)
        self.counts, self.load = trial.counts, trial.load

    def _reroute(self, changes: Changes) -> tuple[Trial, list[tuple[Held, Ints, Ints]]]:
        """The trial, and where ``_held`` was changed for it: what each token left, and what it reached."""
        load = self.load.copy()
        counts = [count.copy() for count in self.counts]
        rerouted = []
        for expert, slots in self._columns(changes).items():
            old, new = self.rank_of[:, expert], slots // self.case.slots
            asked = self.asked[:, expert]
            load += _sums(new, asked, len(load)) - _sums(old, asked, len(load))
            every = self._by_expert[self._first[expert] : self._first[expert + 1]]
            source = self.source[every]
            for n, hop in enumerate(self.hops):
                size = self.case.G // hop.groups
                left, reached = (old // size)[source], (new // size)[source]
                moves = left != reached
                if not moves.any():
                    continue
                tokens, left, reached = every[moves], left[moves], reached[moves]
                held, holder = self._held[n], self._class[n][tokens]
                at_left, at_reached = tokens * hop.groups + left, tokens * hop.groups + reached
                rerouted.append((held, at_left, at_reached))
                held[at_left] -= 1
                gone = held[at_left] == 0
                fresh = held[at_reached] == 0
                held[at_reached] += 1
                entries = hop.groups * hop.classes
                lost = np.bincount((left * hop.classes + holder)[gone], minlength=entries)
                won = np.bincount((reached * hop.classes + holder)[fresh], minlength=entries)
                counts[n] += (won - lost).reshape(hop.groups, hop.classes).astype(np.float64)
        return Trial(changes, tuple(counts), load), rerouted

    def _held_by_group(self, hop: Hop) -> Held:
        """[T, groups]: how many of a token's experts each group serves."""
        held = np.zeros((len(self.source), hop.groups), dtype=np.uint8 if self.case.K < 256 else np.uint16)
        tokens = np.arange(len(self.source))
        for column in self.ids.T:
            held[tokens, self.rank_of[self.source, column] // (self.case.G // hop.groups)] += 1
        return held

    def at_peak(self, hop: int, group: int, holder: int) -> tuple[Floats, Floats]:
        """Tokens of a holder class, by slot that serves them: those no other slot of the group serves (for its own
        slots), and those that reach the group by no slot (for the others).
        """
        spec, case = self.hops[hop], self.case
        tokens = np.flatnonzero(self._class[hop] == holder)
        slots = self.slot_of[self.source[tokens][:, None], self.ids[tokens]]
        inside = slots // (case.P // spec.groups) == group
        reached = inside.sum(axis=1)
        alone = np.bincount(slots[(reached == 1)[:, None] & inside], minlength=case.P)
        absent = np.bincount(slots[reached == 0].ravel(), minlength=case.P)
        return alone.astype(np.float64), absent.astype(np.float64)

    def slot_load(self) -> Floats:
        """[P]: assignments by slot."""
        return _sums(self.slot_of, self.asked, self.case.P)

    def _columns(self, changes: Changes) -> dict[int, Ints]:
        """The slot that serves each source rank, for every expert whose copies change."""
        table = changed(self.table, changes)
        experts = {int(self.table[slot]) for slot, _ in changes} | {expert for _, expert in changes}
        return {expert: self.near.serving(np.flatnonzero(table == expert)) for expert in sorted(experts)}


class LoadState:
    """The expected counts of loads alone (independence); the same for every class, so one is kept."""

    def __init__(self, case: Case, routed: Loads, hops: Sequence[Hop], table: Table) -> None:
        self.case, self.hops, self.routed = case, tuple(hops), routed
        self.restart(table)

    def restart(self, table: Table) -> None:
        """Take a whole table."""
        self.table = table.copy()
        self.counts, self.load = self._figures(table)

    def trial(self, changes: Changes) -> Trial:
        """Counts and loads with some slots changed; this placement stays as it is."""
        return Trial(changes, *self._figures(changed(self.table, changes)))

    def accept(self, trial: Trial) -> None:
        """Take the changes of a trial."""
        self.table = changed(self.table, trial.changes)
        self.counts, self.load = trial.counts, trial.load

    def at_peak(self, hop: int, group: int, holder: int) -> tuple[Floats, Floats]:
        """By slot, tokens that reach no other slot of the group, and tokens that reach the group by no slot."""
        del holder
        share = self._share(self.table)
        untouched = 1.0 - self.counts[hop][group, 0] * self.hops[hop].classes / max(self.routed.tokens, 1e-300)
        return share * untouched / np.maximum(1.0 - share, 1e-12), share * untouched

    def slot_load(self) -> Floats:
        """[P]: assignments by slot."""
        return self._share(self.table) * self.routed.tokens

    def _share(self, table: Table) -> Floats:
        copies = np.bincount(table, minlength=self.case.E)
        return (self.routed.load / np.maximum(copies, 1) / max(self.routed.tokens, 1e-300))[table]

    def _figures(self, table: Table) -> tuple[tuple[Floats, ...], Floats]:
        case, share = self.case, self._share(table)
        missed = 1.0 - np.minimum(1.0, share)
        counts = []
        for hop in self.hops:
            reached = 1.0 - missed.reshape(hop.groups, -1).prod(axis=1)
            counts.append((self.routed.tokens / hop.classes * reached)[:, None])
        return tuple(counts), (share * self.routed.tokens).reshape(case.G, -1).sum(axis=1)


def _sums(place: Ints, amount: Floats, places: int) -> Floats:
    """float64 [places]: amounts added up by place."""
    return np.bincount(place.ravel(), amount.ravel(), places).astype(np.float64)


State = TokenState | LoadState
