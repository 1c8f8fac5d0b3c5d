"""What no placement's largest count is below, from tokens (page eq. 10), and from pairs that are picked together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.papers.hiermoe.bounds.expected_bounds import least_peak, most_copies
from planner.papers.hiermoe.bounds.pair_bound import MOST_PAIRS, Ints, least_touches, picked_together
from planner.papers.hiermoe.exchange.hops import Hop
from planner.papers.hiermoe.instance import Case, Tokens

MOST_CELLS = 2**24
"""Pairs of experts, times sources, that are worth counting source by source."""
UNEVEN = 1.02
"""From this ratio of the most tokens of a class to their mean on, pairs of that class are counted for themselves."""

_CHUNK = 2**18
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class OfTokens:
    """``selected`` int64 [G, E]: tokens of a source that select an expert; ``sent`` int64 [G]: all of a source."""

    case: Case
    tokens: Tokens
    selected: Ints
    sent: Ints

    @classmethod
    def of(cls, case: Case, tokens: Tokens) -> OfTokens:
        """Count a layer's tokens."""
        selected, sent = np.zeros((case.G, case.E), dtype=np.int64), np.zeros(case.G, dtype=np.int64)
        chunk = max(_CHUNK, selected.size // case.K)
        for first in range(0, tokens.count, chunk):
            source = tokens.source[first : first + chunk].astype(np.int64)
            keys = source[:, None] * case.E + tokens.expert_ids[first : first + chunk]
            selected += np.bincount(keys.ravel(), minlength=selected.size).reshape(selected.shape)
            sent += np.bincount(source, minlength=case.G)
        return cls(case, tokens, selected, sent)

    def peak(self, hop: Hop) -> float:
        """Tokens from one holder to the group with the most."""
        case, n = self.case, hop.groups
        # A group has P/n slots, so K distinct experts touch at least ⌈K·n/P⌉ of them.
        touched = -(-case.K * n // case.P)
        sent = self.sent.reshape(-1, hop.classes).sum(axis=0)
        spread = -(-sent * touched // n)
        selected = self.selected.reshape(-1, hop.classes, case.E)
        on_one = selected.sum(axis=0).max(axis=1)
        if case.P > case.E:
            # One source's tokens for an expert go to one copy; those of a class to at most as many as there can be.
            on_one = np.maximum(selected.max(axis=(0, 2)), -(-on_one // min(most_copies(case), n)))
        return float(max(int(np.maximum(spread, on_one).max()), self._by_pairs(hop, sent)))

    def peak_load(self) -> float:
        """Assignments of the busiest rank."""
        case, load = self.case, self.selected.sum(axis=0)
        if case.P == case.E:
            return float(math.ceil(least_peak(load.astype(np.float64), case.G)))
        shared = -(-int(load.max()) // most_copies(case))
        return float(max(-(-int(load.sum()) // case.G), int(self.selected.max()), shared))

    def _by_pairs(self, hop: Hop, sent: Ints) -> int:
        """The mean over groups and holders of touches that no placement goes below."""
        case, size = self.case, self.case.P // hop.groups
        if self.tokens.count * case.K**2 > MOST_PAIRS:
            return 0
        if case.P > case.E:
            # Groups differ by source: each has its own copies near.
            if case.G * case.E**2 > MOST_CELLS:
                return 0
            touches = np.array([least_touches(pairs, size, case.K) for pairs in self._pairs_by_source])
            return _mean(float(touches.reshape(-1, hop.classes).sum(axis=0).max()), hop.groups)
        best = _mean(least_touches(self._pairs, size, case.K), hop.groups * hop.classes)
        busiest = int(sent.argmax())
        if sent[busiest] > UNEVEN * sent.mean():
            here = self.tokens.source % hop.classes == busiest
            pairs = picked_together(self.tokens.expert_ids[here], case.E)
            best = max(best, _mean(least_touches(pairs, size, case.K), hop.groups))
        return best

    @cached_property
    def _pairs(self) -> Ints:
        return picked_together(self.tokens.expert_ids, self.case.E)

    @cached_property
    def _pairs_by_source(self) -> list[Ints]:
        ids, source = self.tokens.expert_ids, self.tokens.source
        return [picked_together(ids[source == s], self.case.E) for s in range(self.case.G)]


def _mean(touches: float, parts: int) -> int:
    """Some of the parts has at least the mean, and a whole number."""
    return math.ceil(touches / parts * (1 - _ROUNDING))
