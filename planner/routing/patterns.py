"""Tokens that are alike, put together: the distinct sets of experts, and how often each source sends each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.routing.routed import Tokens

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Patterns:
    """``experts`` int64 [M, K], distinct rows, and the tokens: ``count[i]`` of pattern ``m[i]`` from ``source[i]``."""

    experts: Ints
    m: Ints
    source: Ints
    count: Ints

    @property
    def rows(self) -> int:
        """Distinct pairs of source and pattern."""
        return len(self.count)

    def by_class(self, classes: int) -> Ints:
        """int64 [M, classes]: w[m, c], tokens of a pattern whose source is c modulo ``classes``."""
        w = np.zeros((len(self.experts), classes), dtype=np.int64)
        np.add.at(w, (self.m, self.source % classes), self.count)
        return w


def patterns_of(tokens: Tokens) -> Patterns:
    """The patterns of a layer, in lexicographic order."""
    experts, m = np.unique(tokens.expert_ids, axis=0, return_inverse=True)
    width = int(tokens.source.max(initial=0)) + 1
    pairs, count = np.unique(m.reshape(-1).astype(np.int64) * width + tokens.source, return_counts=True)
    return Patterns(experts.astype(np.int64), pairs // width, pairs % width, count.astype(np.int64))
