"""What an operator may do and how long it takes, in the order of ties, for the check."""

from __future__ import annotations

import math
from typing import NamedTuple

TOLERANCE = 1e-9
"""Relative difference below which two figures agree, and two times tie."""
EDGE = 1e-12
"""What rounding may move a time at the edge of a tie."""


class Way(NamedTuple):
    """One thing an operator may do: strategy, degree, fused kernel."""

    strategy: str
    degree: int
    variant: str | None

    def __str__(self) -> str:
        if self.strategy == "inter_decom":
            return f"inter_decom d={self.degree}"
        return self.strategy if self.variant is None else f"{self.strategy} {self.variant}"


class Ways(NamedTuple):
    """Seconds of one call by what is done; each part in the order of ties, and the parts in this order.

    ``ascending_s`` are all of them by size, two infinities behind.
    """

    sequential_s: float | None
    chunked_s: dict[int, float]
    fused_s: dict[str, float]
    ascending_s: list[float]

    def seconds(self, way: Way) -> float | None:
        """Of one way; None where it is not offered: a degree goes with chunks alone, a variant with fused kernels."""
        if way.strategy == "inter_decom":
            return self.chunked_s.get(way.degree) if way.variant is None else None
        if way.degree != 1:
            return None
        if way.strategy == "sequential":
            return self.sequential_s if way.variant is None else None
        return None if way.variant is None else self.fused_s.get(way.variant)

    def least_s(self) -> float:
        """The least time; infinity where there is none."""
        return self.ascending_s[0]

    def least_other_s(self, way: Way) -> float:
        """The least time of all but one; infinity where there is none."""
        least_s = self.ascending_s[0]
        return least_s if self.seconds(way) != least_s else self.ascending_s[1]

    def is_alone_best(self, way: Way) -> bool:
        """Whether nothing else is near a tie with it."""
        least_s, next_s, *_ = self.ascending_s
        return self.seconds(way) == least_s and next_s > least_s * (1 + TOLERANCE) * (1 + EDGE)

    def best(self) -> list[Way]:
        """What may be called the first of those that tie with the least.

        Only rounding at the edge of a tie leaves more than one.
        """
        limit_s = self.least_s() * (1 + TOLERANCE)
        certain_s, possible_s = limit_s * (1 - EDGE), limit_s * (1 + EDGE)
        first: list[Way] = []
        if self.sequential_s is not None and self.sequential_s <= possible_s:
            first.append(Way("sequential", 1, None))
            if self.sequential_s <= certain_s:
                return first
        for d, time_s in self.chunked_s.items():
            if time_s <= possible_s:
                first.append(Way("inter_decom", d, None))
                if time_s <= certain_s:
                    return first
        for variant, time_s in self.fused_s.items():
            if time_s <= possible_s:
                first.append(Way("intra_fusion", 1, variant))
                if time_s <= certain_s:
                    return first
        return first

    def only(self, overlap: bool) -> Ways:
        """Those that overlap, or those that do not."""
        return ways_of(None, self.chunked_s, self.fused_s) if overlap else ways_of(self.sequential_s, {}, {})


def ways_of(sequential_s: float | None, chunked_s: dict[int, float], fused_s: dict[str, float]) -> Ways:
    """With their times by size."""
    times = [*chunked_s.values(), *fused_s.values(), math.inf, math.inf]
    if sequential_s is not None:
        times.append(sequential_s)
    times.sort()
    return Ways(sequential_s, chunked_s, fused_s, times)


def agree(stated: float, recomputed: float) -> bool:
    """Equal within the tolerance."""
    return math.isclose(stated, recomputed, rel_tol=TOLERANCE)
