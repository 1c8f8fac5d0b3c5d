"""Largest and smooth-largest counts (8) of one part of the objective, now and after swaps."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.swaps.token_index import Indices, Pairs

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64] | NDArray[np.float64]


class Counted(Protocol):
    """A hop, or the loads of ranks, under a placement: ``counts`` [groups, classes], ``group`` of each expert.

    ``multiplicity``: classes that each column stands for.
    """

    multiplicity: int
    group: Indices

    @property
    def counts(self) -> Numbers:
        """[groups, classes]."""
        ...

    def totals(self) -> Floats:
        """[E, E]: summed over classes, the count at the group of r once it is exchanged with f of another group."""
        ...

    def entries(self, pairs: Pairs) -> tuple[Numbers, Numbers]:
        """[swaps, classes] each: counts after each of the swaps, at either expert's group."""
        ...

    def row(self, r: int, others: Indices) -> tuple[Numbers, Numbers]:
        """The same for one expert against several of other groups."""
        ...

    def one_class(self, r: int, c: int) -> Numbers:
        """[E]: for one class, the count at the group of r once it is exchanged with each f of another group."""
        ...

    def swap(self, r: int, f: int, tokens: Indices) -> None:
        """Exchange two experts; ``tokens`` select one of them or both."""
        ...


def power(x: Floats, gamma: float) -> Floats:
    """x^gamma for x >= 0; whole exponents by multiplication, which rounds alike on every machine."""
    if gamma != int(gamma) or gamma > 64:
        return np.power(x, gamma)
    exponent, square, result = int(gamma), x, None
    while exponent:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        if exponent:
            square = square * square
    return np.ones_like(x) if result is None else result


class Term:
    """A part of the objective: ``weight`` seconds for each of the largest count of ``counted``."""

    def __init__(self, weight: float, counted: Counted, gamma: float) -> None:
        self.weight, self.counted, self.gamma = weight, counted, gamma
        self.refresh()

    def refresh(self) -> None:
        """Read the counts again after they changed."""
        counts = self.counted.counts
        self.group_peak: Numbers = counts.max(axis=1)
        self.peak = float(self.group_peak.max())
        self._unit = self.peak if self.peak > 0 else 1.0
        self._group_sum: Floats = power(counts / self._unit, self.gamma).sum(axis=1) * self.counted.multiplicity
        self._sum = float(self._group_sum.sum())
        total = counts.sum(axis=1)
        self._largest_total = float(total.max()) or 1.0
        self._total_power: Floats = power(total / self._largest_total, self.gamma)

    @property
    def smooth(self) -> float:
        """smax of the counts (8)."""
        return float(self._sum ** (1.0 / self.gamma)) * self._unit if self.peak > 0 else 0.0

    def peaks(self, one: Indices, other: Indices, own: Numbers, others: Numbers) -> Floats:
        """float64 [swaps]: the largest count once the groups of ``one`` and ``other`` have these counts."""
        a, b = self.counted.group[one], self.counted.group[other]
        largest = np.argsort(-self.group_peak, kind="stable")[:3]
        values = np.zeros(3)
        values[: len(largest)] = self.group_peak[largest]
        ids = np.full(3, -1)
        ids[: len(largest)] = largest
        out = [(a == group) | (b == group) for group in ids[:2]]
        rest = np.where(~out[0], values[0], np.where(~out[1], values[1], values[2]))
        new = np.maximum(np.maximum(own.max(axis=1), others.max(axis=1)), rest)
        return np.where(a == b, self.peak, new)

    def smooths(self, one: Indices, other: Indices, own: Numbers, others: Numbers) -> Floats:
        """float64 [swaps]: smax in the same way."""
        if self.peak == 0:
            return np.zeros(len(one))
        a, b = self.counted.group[one], self.counted.group[other]
        rest = np.maximum(0.0, self._sum - self._group_sum[a] - self._group_sum[b])
        ends = power(own / self._unit, self.gamma).sum(axis=1) + power(others / self._unit, self.gamma).sum(axis=1)
        new = self._root(rest + ends * self.counted.multiplicity)
        return np.where(a == b, self.smooth, new * self._unit)

    def screened(self, one: Indices, other: Indices) -> Floats:
        """float64 [swaps]: smax judged by counts summed over classes (9): two terms of its sum anew, the others stay.

        Scaled so that what changes no count is worth what there is.
        """
        if self.peak == 0:
            return np.zeros(len(one))
        group = self.counted.group
        change = self.counted.totals()
        change /= self._largest_total
        change = power(change, self.gamma)
        change -= self._total_power[group][:, None]
        change[group[:, None] == group] = 0.0
        new = change[one, other] + change[other, one]
        now = float(self._total_power.sum())
        return self._root(np.maximum(new / now + 1.0, 0.0)) * self.smooth

    def _root(self, x: Floats) -> Floats:
        return np.power(x, 1.0 / self.gamma)
