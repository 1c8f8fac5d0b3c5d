"""What no placement's largest expected count is below, for routing that is known as loads or by its rule alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.exchange.hops import Hop
from planner.papers.hiermoe.instance import Case, Loads, Uniform

Floats = NDArray[np.float64]

SAFETY = 1e-12
"""Bounds of expected counts are taken lower by this much, relative: sums differ in their last bits."""


def least_peak(values: Floats, bins: int) -> float:
    """A lower bound on the largest sum when ``values`` >= 0 go into ``bins`` of equal cardinality.

    The mean; and, for each j, some bin holds j + 1 of the largest j·bins + 1 values, and the rest of it is at least
    the smallest. j = 0 is the page's term.
    """
    size = len(values) // bins
    descending = np.sort(values)[::-1]
    largest = np.append(0.0, np.cumsum(descending))
    smallest = np.append(0.0, np.cumsum(descending[::-1]))
    best = float(values.sum()) / bins
    for j in range(size):
        first = j * (bins - 1)
        together = float(largest[first + j + 1] - largest[first])
        best = max(best, together + float(smallest[size - j - 1]))
    return best


def most_copies(case: Case) -> int:
    """Ranks that one expert can be on."""
    return min(case.P - case.E + 1, case.G)


@dataclass(frozen=True, eq=False)
class OfLoads:
    """Independent experts: the chance to touch a group follows from the sum of λ = -ln(1 - ρ) of its slots."""

    case: Case
    loads: Loads

    def peak(self, hop: Hop) -> float:
        """Tokens from one holder to the group with the most."""
        tokens, copies = self.loads.tokens, most_copies(self.case)
        if tokens == 0:
            return 0.0
        share = np.minimum(1.0, self.loads.load / tokens)
        with np.errstate(divide="ignore"):
            # c copies of ρ/c each have least together at the most copies: -c·ln(1 - ρ/c) falls with c.
            of_expert = -copies * np.log1p(-share / copies)
        if np.isinf(of_expert).any():
            most = math.inf
        elif copies > 1:
            most = max(float(of_expert.sum()) / hop.groups, float(of_expert.max()) / copies)
        else:
            most = least_peak(of_expert, hop.groups)
        return tokens / hop.classes * -math.expm1(-most) * (1 - SAFETY)

    def peak_load(self) -> float:
        """Assignments of the busiest rank."""
        load = self.loads.load
        if self.case.P == self.case.E:
            return least_peak(load, self.case.G) * (1 - SAFETY)
        return max(float(load.sum()) / self.case.G, float(load.max()) / most_copies(self.case)) * (1 - SAFETY)


@dataclass(frozen=True, eq=False)
class OfUniform:
    """Equation 7, and with replicas its least: q is concave, so touches are fewest when a source's E fill groups."""

    case: Case
    uniform: Uniform

    def peak(self, hop: Hop) -> float:
        """Tokens from one holder to the group with the most."""
        full, rest = divmod(self.case.E, self.case.P // hop.groups)
        touches = full * self._touched(self.case.P // hop.groups) + self._touched(rest)
        sources = self.case.G // hop.classes
        return sources * self.uniform.tokens_per_rank * touches / hop.groups * (1 - SAFETY)

    def peak_load(self) -> float:
        """Assignments of the busiest rank: the mean."""
        return self.uniform.tokens_per_rank * self.case.K * (1 - SAFETY)

    def _touched(self, held: int) -> float:
        E, K = self.case.E, self.case.K
        return 1.0 - math.prod(max(E - held - j, 0) / (E - j) for j in range(K))
