"""One hop under a placement that changes swap by swap, counted without tokens: expected counts, and rank loads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.exchange.hops import Hop
from planner.papers.hiermoe.swaps.token_index import Indices, Pairs

Floats = NDArray[np.float64]
CERTAIN = 50.0
"""-ln(1 - rho) of an expert that every token selects: 1 - exp(-50) is 1 in double precision."""


class ExpectedHop:
    """``counts`` float64 [groups, 1], alike for each of ``multiplicity`` classes: T/classes (1 - exp(-sum of lambda)).

    lambda_e = -ln(1 - rho_e), of chances ``rho`` [E] that a token selects the expert, independently of the others.
    """

    def __init__(self, rho: Floats, tokens: float, hop: Hop, rank: Indices, G: int) -> None:
        self.hop = hop
        self.multiplicity = hop.classes
        self.group: Indices = rank // (G // hop.groups)
        with np.errstate(divide="ignore"):
            self._weight = np.minimum(CERTAIN, -np.log1p(-rho))
        self._scale = tokens / hop.classes
        self._count()

    def totals(self) -> Floats:
        """float64 [E, E]: the count at the group of r once it is exchanged with f."""
        w = self._weight
        return self._of((self._sum[self.group] - w)[:, None] + w)

    def entries(self, pairs: Pairs) -> tuple[Floats, Floats]:
        """[swaps, 1] each: counts after each of the swaps, at the group of ``one`` and at that of ``other``."""
        more = self._weight[pairs.other] - self._weight[pairs.one]
        new = self._sum[self.group[pairs.one]] + more, self._sum[self.group[pairs.other]] - more
        return self._of(new[0])[:, None], self._of(new[1])[:, None]

    def row(self, r: int, others: Indices) -> tuple[Floats, Floats]:
        """The same for one expert against several."""
        return self.entries(Pairs(np.full(len(others), r), others))

    def one_class(self, r: int, c: int) -> Floats:
        """float64 [E]: the count at the group of r once it is exchanged with each f."""
        del c
        return self._of(self._sum[self.group[r]] - self._weight[r] + self._weight)

    def swap(self, r: int, f: int, tokens: Indices) -> None:
        """Exchange the groups of two experts."""
        del tokens
        self.group[[r, f]] = self.group[[f, r]]
        self._count()

    def _count(self) -> None:
        # Summed afresh, since what is added and taken away again leaves rounding behind.
        total = np.bincount(self.group, weights=self._weight, minlength=self.hop.groups)
        self._sum: Floats = total.astype(np.float64)
        self.counts = self._of(self._sum)[:, None]

    def _of(self, weight: Floats) -> Floats:
        return -self._scale * np.expm1(-np.maximum(weight, 0.0))


class RankLoads:
    """``counts`` float64 [G, 1]: assignments on each rank, ``load`` [E] by expert."""

    multiplicity = 1

    def __init__(self, load: Floats, rank: Indices, G: int) -> None:
        self._load, self._G = load, G
        self.group: Indices = rank.copy()
        self._count()

    def totals(self) -> Floats:
        """float64 [E, E]: the load of the rank of r once it is exchanged with f."""
        without: Floats = self.counts[self.group, 0] - self._load
        return without[:, None] + self._load

    def entries(self, pairs: Pairs) -> tuple[Floats, Floats]:
        """[swaps, 1] each: loads after each of the swaps, of the rank of ``one`` and of that of ``other``."""
        more = (self._load[pairs.other] - self._load[pairs.one])[:, None]
        return self.counts[self.group[pairs.one]] + more, self.counts[self.group[pairs.other]] - more

    def row(self, r: int, others: Indices) -> tuple[Floats, Floats]:
        """The same for one expert against several."""
        return self.entries(Pairs(np.full(len(others), r), others))

    def one_class(self, r: int, c: int) -> Floats:
        """float64 [E]: the load of the rank of r once it is exchanged with each f."""
        del c
        new: Floats = self.counts[self.group[r], 0] - self._load[r] + self._load
        return new

    def swap(self, r: int, f: int, tokens: Indices) -> None:
        """Exchange the ranks of two experts."""
        del tokens
        self.group[[r, f]] = self.group[[f, r]]
        self._count()

    def _count(self) -> None:
        total = np.bincount(self.group, weights=self._load, minlength=self._G)
        self.counts: Floats = total.astype(np.float64)[:, None]
