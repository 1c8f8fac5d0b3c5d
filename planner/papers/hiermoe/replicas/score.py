"""What a placement with copies is worth: exchange time, largest rank load, and the smooth form that leads a search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.exchange.hops import Hop
from planner.papers.hiermoe.instance import Case
from planner.papers.hiermoe.replicas.state import State, Trial

Floats = NDArray[np.float64]

Worth = tuple[float, float]
"""Assignments by which the largest rank load passes the cap, then seconds: compared in this order."""


@dataclass(frozen=True, eq=False)
class Scorer:
    """Equation 5 at one dimension, as weights of its peaks. ``cap`` limits the largest rank load."""

    dimension: int
    start_s: float
    per_token_s: tuple[float, ...]
    a2a_multiplier: float
    per_load_s: float
    gamma: float
    cap: float

    @classmethod
    def of(cls, case: Case, dimension: int, hops: tuple[Hop, ...], cap: float) -> Scorer:
        """The weights of a case."""
        problem = case.problem
        links = [case.link(hop.kind, hop.level) for hop in hops]
        return cls(
            dimension,
            sum(alpha for alpha, _ in links),
            tuple(
                beta * hop.participants * problem.costs.token_bytes for hop, (_, beta) in zip(hops, links, strict=True)
            ),
            problem.objective.a2a_multiplier,
            problem.objective.compute_multiplier * problem.costs.compute_s_per_assignment,
            problem.search.gamma,
            cap,
        )

    def a2a_s(self, at: State | Trial) -> float:
        """Modelled time of one exchange (eqs 1, 2)."""
        peaks = (weight * float(count.max()) for weight, count in zip(self.per_token_s, at.counts, strict=True))
        return self.start_s + sum(peaks)

    def minds_load(self, at: State | Trial) -> bool:
        """Whether a lower rank load is worth anything here."""
        return self.per_load_s > 0 or float(at.load.max()) > self.cap

    def plain(self, at: State | Trial) -> Worth:
        """Equation 5 itself."""
        peak = float(at.load.max())
        return max(0.0, peak - self.cap), self.a2a_multiplier * self.a2a_s(at) + self.per_load_s * peak

    def smooth(self, at: State | Trial) -> Worth:
        """Equation 5 with the maxima of eq. 8, of counts and of rank loads."""
        smooth = (weight * self._smax(count) for weight, count in zip(self.per_token_s, at.counts, strict=True))
        value = self.a2a_multiplier * (self.start_s + sum(smooth))
        if self.per_load_s:
            value += self.per_load_s * self._smax(at.load)
        return max(0.0, float(at.load.max()) - self.cap), value

    def _smax(self, values: Floats) -> float:
        most = float(values.max())
        return most * float(((values / most) ** self.gamma).sum()) ** (1 / self.gamma) if most > 0 else 0.0


def better(one: Worth, other: Worth) -> bool:
    """Whether the first is worth less seconds, or passes the cap by less, by more than rounding."""
    if abs(one[0] - other[0]) > 1e-9 * max(one[0], other[0]):
        return one[0] < other[0]
    return one[1] < other[1] - 1e-9 * abs(other[1])
