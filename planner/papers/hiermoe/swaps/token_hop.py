"""One hop of the exchange under a placement that changes swap by swap, counted from its tokens. No replicas."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.exchange.hops import Hop
from planner.papers.hiermoe.swaps.swap_statistics import KEYS, Counts, Flags, Statistics, count_statistics, flags
from planner.papers.hiermoe.swaps.token_index import Indices, Occurrences, Pairs, TokenIndex

KEPT_BYTES = 2**28
"""Counts by expert and class that are remembered for groups, at most."""

SmallCounts = NDArray[np.int32]

Entries = tuple[Counts, Counts]
"""[swaps, classes] each: what the hop's counts at the two experts' groups become."""


class TokenHop:
    """``counts`` int64 [groups, classes] of eq. 3 and ``group`` int64 [E]; the rest serves to tell what a swap does."""

    multiplicity = 1

    def __init__(self, index: TokenIndex, hop: Hop, rank: Indices, G: int) -> None:
        self.index, self.hop = index, hop
        self.group: Indices = rank // (G // hop.groups)
        self._class = index.source % np.int32(hop.classes)
        self._groups = self.group.astype(np.int16)[index.experts]
        self._alone, first = flags(self._groups)
        self.counts = self._counted(self._groups, first)
        self.statistics: Statistics | None = None
        self._alone_by_class: SmallCounts | None = None
        self._chosen: SmallCounts | None = None
        self._missing: dict[int, SmallCounts] = {}

    def ready(self) -> Statistics:
        """The statistics of all pairs, counted on first use and kept up to date from then on."""
        if self.statistics is None:
            _, first = flags(self._groups)
            index = self.index
            self.statistics = count_statistics(
                index.experts, self._groups, self._alone, first, index.E, self.hop.groups
            )
        return self.statistics

    def totals(self) -> NDArray[np.float64]:
        """float64 [E, E]: over all holders, the count at the group of r once it is exchanged with f (9).

        Only pairs of two groups mean anything.
        """
        found, group = self.ready(), self.group
        fixed = self.counts.sum(axis=1)[group] - found.alone
        new = found.beside - found.touch[group]
        new += self.index.selected
        new += fixed[:, None]
        return new.astype(np.float64)

    def entries(self, pairs: Pairs) -> Entries:
        """Exact counts after each of the swaps, at the group of ``one`` and at that of ``other``."""
        with_one, with_other = pairs.both(self.index)
        return self._after(pairs.one, pairs.other, with_one), self._after(pairs.other, pairs.one, with_other)

    def row(self, r: int, others: Indices) -> Entries:
        """The same for one expert against several of other groups, from counts by expert and class."""
        E, classes = self.index.E, self.hop.classes
        found = self.index.of(r)
        kind = self._class[found.token].astype(np.int64)
        experts, groups = self.index.experts[:, found.token], self._groups[:, found.token]
        alone, first = flags(groups)
        group = int(self.group[r])
        own = self._missing_of(group)[others] - self._lone()[r] + self.counts[group]
        other = self.counts[self.group[others]] - self._lone()[others]

        lone = self._alone[found.place, found.token]
        keys = (experts[:, lone].astype(np.int64) * classes + kind[lone]).ravel()
        own += np.bincount(keys, minlength=E * classes).reshape(E, classes)[others]
        keys = (experts.astype(np.int64) * classes + kind)[alone]
        other += np.bincount(keys, minlength=E * classes).reshape(E, classes)[others]
        keys = (groups.astype(np.int64) * classes + kind)[first]
        touch = np.bincount(keys, minlength=self.counts.size).reshape(self.counts.shape)
        other += (np.bincount(kind, minlength=classes) - touch)[self.group[others]]
        return own, other

    def one_class(self, r: int, c: int) -> Counts:
        """int64 [E]: the count that holders of class c send to the group of r once it is exchanged with each f."""
        found = self.index.of(r)
        here = (self._class[found.token] == c) & self._alone[found.place, found.token]
        beside = np.bincount(self.index.experts[:, found.token[here]].ravel(), minlength=self.index.E)
        group = int(self.group[r])
        fixed = self.counts[group, c] - np.count_nonzero(here)
        new: Counts = self._missing_of(group)[:, c] + beside + fixed
        return new

    def swap(self, r: int, f: int, tokens: Indices) -> None:
        """Exchange the groups of two experts and bring all counts up to date; ``tokens`` select one of them or both."""
        a, b = int(self.group[r]), int(self.group[f])
        if a == b:
            return
        ends, others = self.index.of(r), self.index.of(f)
        before, alone = self._groups.take(tokens, axis=1), self._alone.take(tokens, axis=1)
        self._groups[ends.place, ends.token] = b
        self._groups[others.place, others.token] = a
        after = self._groups.take(tokens, axis=1)
        now_alone, _ = flags(after)
        self._alone[:, tokens] = now_alone
        self.group[[r, f]] = b, a
        kind, experts = self._class[tokens], self.index.experts.take(tokens, axis=1)
        for group in (a, b):
            change = (after == group).any(axis=0).astype(np.int8) - (before == group).any(axis=0)
            for sign in (1, -1):
                which = np.flatnonzero(change == sign)
                self._touch(sign, group, kind[which], experts.take(which, axis=1))
        for sign, changed in ((1, now_alone & ~alone), (-1, alone & ~now_alone)):
            self._turn(sign, changed, kind, experts)

    def _touch(self, sign: int, group: int, kind: NDArray[np.int32], experts: NDArray[np.int16]) -> None:
        """Tokens that came to touch a group (sign 1), or no longer do (-1)."""
        self.counts[group] += sign * np.bincount(kind, minlength=self.hop.classes)
        if self.statistics is not None:
            self.statistics.touch[group] += sign * np.bincount(experts.ravel(), minlength=self.index.E)
        missing = self._missing.get(group)
        if missing is not None:
            keys = experts.astype(np.int64) * self.hop.classes + kind
            np.subtract.at(missing.reshape(-1), keys.ravel(), np.int32(sign))

    def _turn(self, sign: int, changed: Flags, kind: NDArray[np.int32], experts: NDArray[np.int16]) -> None:
        """Experts that got alone in their groups (sign 1), or no longer are (-1)."""
        place, column = changed.nonzero()
        expert = experts[place, column].astype(np.int64)
        if self._alone_by_class is not None:
            keys = expert * self.hop.classes + kind[column]
            np.add.at(self._alone_by_class.reshape(-1), keys, np.int32(sign))
        if self.statistics is not None:
            self.statistics.alone += sign * np.bincount(expert, minlength=self.index.E)
            keys = expert * self.index.E + experts[:, column]
            np.add.at(self.statistics.beside.reshape(-1), keys.ravel(), np.int64(sign))

    def _after(self, leaving: Indices, coming: Indices, both: Occurrences) -> Counts:
        """Counts [swaps, classes] at the groups of ``leaving`` once ``coming`` takes its place (9), class by class."""
        classes, group = self.hop.classes, self.group[leaving]
        new = self.counts[group] - self._lone()[leaving]
        for each in np.unique(group).tolist():
            here = np.flatnonzero(group == each)
            new[here] += self._missing_of(each)[coming[here]]
        lone = self._alone[both.place, both.token]
        keys = both.pair[lone] * classes + self._class[both.token[lone]]
        return new + np.bincount(keys, minlength=new.size).reshape(new.shape)

    def _missing_of(self, group: int) -> SmallCounts:
        """int32 [E, classes]: tokens with e that touch nothing of the group."""
        kept = self._missing.pop(group, None)
        if kept is None:
            there = np.flatnonzero((self._groups == group).any(axis=0))
            kept = self._selected() - self._by_class(there)
            while self._missing and (len(self._missing) + 1) * kept.nbytes > KEPT_BYTES:
                self._missing.pop(next(iter(self._missing)))
        # Last in, as the first one is the next to go.
        self._missing[group] = kept
        return kept

    def _selected(self) -> SmallCounts:
        """int32 [E, classes]: tokens with e."""
        if self._chosen is None:
            self._chosen = self._by_class(np.arange(self.index.T))
        return self._chosen

    def _lone(self) -> SmallCounts:
        """int32 [E, classes]: tokens with e alone in its group."""
        if self._alone_by_class is None:
            self._alone_by_class = self._by_class(np.arange(self.index.T), self._alone)
        return self._alone_by_class

    def _by_class(self, tokens: Indices, wanted: Flags | None = None) -> SmallCounts:
        E, classes = self.index.E, self.hop.classes
        found = np.zeros(E * classes, dtype=np.int64)
        chunk = max(KEYS, len(found)) // self.index.K + 1
        for start in range(0, len(tokens), chunk):
            part = tokens[start : start + chunk]
            keys = self.index.experts.take(part, axis=1).astype(np.int64) * classes + self._class[part]
            counted = keys.ravel() if wanted is None else keys[wanted.take(part, axis=1)]
            found += np.bincount(counted, minlength=len(found))
        return found.astype(np.int32).reshape(E, classes)

    def _counted(self, groups: NDArray[np.int16], first: Flags) -> Counts:
        found = np.zeros(self.hop.groups * self.hop.classes, dtype=np.int64)
        for row, new in zip(groups, first, strict=True):
            keys = row.astype(np.int64) * self.hop.classes + self._class
            found += np.bincount(keys[new], minlength=len(found))
        return found.reshape(self.hop.groups, self.hop.classes)
