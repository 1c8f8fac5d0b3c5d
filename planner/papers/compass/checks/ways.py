"""What an operator may do and how long it takes, in the order of ties, for the check."""

from __future__ import annotations

import math
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Ways:
    """Seconds of one call by what is done; each part in the order of ties, and the parts in this order."""

    sequential_s: float | None
    chunked_s: dict[int, float]
    fused_s: dict[str, float]

    def seconds(self, way: Way) -> float | None:
        """Of one way; None where it is not offered."""
        if way.strategy == "sequential":
            return self.sequential_s
        if way.strategy == "inter_decom":
            return self.chunked_s.get(way.degree)
        return self.fused_s.get(way.variant or "")

    def least_s(self, without: Way | None = None) -> float:
        """The least time, of all or of the others; infinity where there is none."""
        strategy = None if without is None else without.strategy
        chunked, fused = self.chunked_s, self.fused_s
        if without is not None and strategy == "inter_decom":
            chunked = {d: time_s for d, time_s in chunked.items() if d != without.degree}
        if without is not None and strategy == "intra_fusion":
            fused = {variant: time_s for variant, time_s in fused.items() if variant != without.variant}
        alone_s = math.inf if self.sequential_s is None or strategy == "sequential" else self.sequential_s
        return min(alone_s, min(chunked.values(), default=math.inf), min(fused.values(), default=math.inf))

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
        return Ways(None, self.chunked_s, self.fused_s) if overlap else Ways(self.sequential_s, {}, {})


def agree(stated: float, recomputed: float) -> bool:
    """Equal within the tolerance."""
    return math.isclose(stated, recomputed, rel_tol=TOLERANCE)
