"""A budget of moved experts that all layers share (page, "Re-planning with a budget"), spent where it gains most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.papers.hiermoe.exchange.time import TIE


@dataclass(frozen=True)
class Option:
    """What one layer reaches by moving ``moved`` experts."""

    moved: int
    objective_s: float


def shared(curves: Sequence[Sequence[Option]], budget: int) -> list[int] | None:
    """For each layer the option to take: least sum of objectives within the budget, then fewest moves.

    Exact for the options given, by dynamic programming over moves. None if no choice keeps the budget.
    """
    most = min(budget, sum(max(option.moved for option in curve) for curve in curves))
    least = np.zeros(most + 1)
    chosen = []
    for curve in curves:
        reached = np.full(most + 1, np.inf)
        taken = np.full(most + 1, -1, dtype=np.int64)
        for number, option in enumerate(curve):
            if option.moved > most:
                continue
            value = least[: most + 1 - option.moved] + option.objective_s
            better = value < reached[option.moved :]
            reached[option.moved :][better] = value[better]
            taken[option.moved :][better] = number
        least = reached
        chosen.append(taken)
    if not np.isfinite(least[-1]):
        return None
    # The same sum with fewer moves is the same plan but for the moves.
    left = int(np.flatnonzero(least <= least[-1] * (1 + TIE))[0])
    options = []
    for curve, taken in zip(reversed(curves), reversed(chosen), strict=True):
        number = int(taken[left])
        options.append(number)
        left -= curve[number].moved
    return options[::-1]
