"""Tokens by expert: what the swap search looks up of one layer, whatever the placement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.routing.routed import Tokens

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Tokens [M] that select an expert, and the place [M] that it has among their K; ``pair`` [M] says whose."""

    token: Indices
    place: Indices
    pair: Indices


class TokenIndex:
    """``experts`` int16 [K, T] and ``source`` int32 [T] of a layer, and for each expert its tokens."""

    def __init__(self, tokens: Tokens, E: int) -> None:
        self.E = E
        self.source = tokens.source
        self.K, self.T = tokens.expert_ids.shape[1], tokens.count
        self.experts: NDArray[np.int16] = np.ascontiguousarray(tokens.expert_ids.T, dtype=np.int16)
        order = np.argsort(self.experts.ravel(), kind="stable")
        self._token = order % max(1, self.T)
        self._place = order // max(1, self.T)
        self.selected: Indices = np.bincount(self.experts.ravel(), minlength=E)
        self._first = np.concatenate(([0], np.cumsum(self.selected)))

    def of(self, expert: int) -> Occurrences:
        """The tokens of one expert."""
        part = slice(int(self._first[expert]), int(self._first[expert + 1]))
        return Occurrences(self._token[part], self._place[part], np.zeros(part.stop - part.start, np.int64))

    def of_each(self, experts: Indices) -> Occurrences:
        """The tokens of each of some experts, one after the other."""
        number = self.selected[experts]
        pair = np.repeat(np.arange(len(experts)), number)
        start = self._first[experts] - np.cumsum(number) + number
        at = np.arange(len(pair)) + start[pair]
        return Occurrences(self._token[at], self._place[at], pair)

    def of_either(self, r: int, f: int) -> Indices:
        """int64 [M]: tokens that select at least one of two experts, ascending."""
        chosen = np.zeros(self.T, dtype=bool)
        chosen[self.of(r).token] = True
        chosen[self.of(f).token] = True
        return np.flatnonzero(chosen)


class Pairs:
    """Swaps to evaluate, one by one: expert ``one[i]`` against ``other[i]``."""

    def __init__(self, one: Indices, other: Indices) -> None:
        self.one, self.other = one, other
        self._both: tuple[Occurrences, Occurrences] | None = None

    def both(self, index: TokenIndex) -> tuple[Occurrences, Occurrences]:
        """Tokens that select both experts of a pair: with the place of ``one``, and with that of ``other``."""
        if self._both is None:
            turned = index.selected[self.one] > index.selected[self.other]
            rare, common = np.where(turned, self.other, self.one), np.where(turned, self.one, self.other)
            found = index.of_each(rare)
            wanted = common.astype(index.experts.dtype)[found.pair]
            place = np.full(len(wanted), -1)
            for k, row in enumerate(index.experts):
                place[row[found.token] == wanted] = k
            here = np.flatnonzero(place >= 0)
            token, pair, rare_place, place = found.token[here], found.pair[here], found.place[here], place[here]
            flip = turned[pair]
            self._both = (
                Occurrences(token, np.where(flip, place, rare_place), pair),
                Occurrences(token, np.where(flip, rare_place, place), pair),
            )
        return self._both
