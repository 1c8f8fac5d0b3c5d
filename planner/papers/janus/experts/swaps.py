"""Two copies of two instances change places: what that does to co-activation, and how far it can be brought down."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.janus.experts.placement import LESS, MOST_SWAPS, Floats, Ints

Swap = tuple[int, int, int, int]
"""Instance and place of one copy, instance and place of the other."""

TENURE = 4
"""Iterations that a copy stays away from the instance it left, at least; half of the slots where that is more."""


LEAST_STEPS, LEAST_PAIRS = 100, 2**24
"""Steps of a search with a smaller budget, unless they look at more swaps than these."""
MOST_PAIRS = 2**22
"""Swaps that a step may look at; where an instance has more there are no steps."""
DESCENT_PAIRS = 2**26
"""Swaps that the page's second phase may look at; 200 of instances of any usual size are far less."""
STEP_PAIRS = 4096
"""What a step costs besides its swaps, in swaps."""


class Swaps:
    """A placement whose slots are all used, and what follows from it: ``beside[g, e]`` = Σ w(e, x) over x on g."""

    def __init__(self, table: Ints, together: Floats) -> None:
        self.table = table.copy()
        self._together = together
        self._inside = np.zeros((len(table), len(together)), bool)
        np.put_along_axis(self._inside, table, True, axis=1)
        self._beside = self._inside @ together
        self.totals = np.take_along_axis(self._beside, table, axis=1).sum(axis=1) / 2

    def after(self, instance: int) -> tuple[Floats, Floats]:
        """float64 [slots, n, slots] each: I of the instance and of the other one after each swap; infinite where none.

        The first axis is the instance's place, the others are the other instance and its place.
        """
        table, beside, inside = self.table, self._beside, self._inside
        own = table[instance]
        between = self._together[own].take(table, axis=1)
        mine = (beside[instance].take(table) + self.totals[instance]) - between
        mine -= beside[instance, own][:, None, None]
        theirs = (self.totals[:, None] - np.take_along_axis(beside, table, axis=1)) - between
        theirs += beside[:, own].T[:, :, None]
        mine[inside[:, own].T[:, :, None] | inside[instance].take(table)] = np.inf
        return mine, theirs

    def swap(self, swap: Swap) -> None:
        """Make a swap."""
        g, a, h, b = swap
        leaves, comes = int(self.table[g, a]), int(self.table[h, b])
        difference = self._together[comes] - self._together[leaves]
        self.table[g, a], self.table[h, b] = comes, leaves
        self._inside[g, leaves] = self._inside[h, comes] = False
        self._inside[g, comes] = self._inside[h, leaves] = True
        self._beside[g] += difference
        self._beside[h] -= difference
        for instance in (g, h):
            self.totals[instance] = self._beside[instance, self.table[instance]].sum() / 2


def descent(table: Ints, together: Floats, most: int = MOST_SWAPS) -> Ints:
    """The page's second phase: the best swap out of the worst instance while the sorted I fall."""
    n, slots = table.shape
    pairs = n * slots * slots
    if pairs > MOST_PAIRS:
        return table
    state = Swaps(table, together)
    for _ in range(min(most, DESCENT_PAIRS // pairs)):
        worst = int(state.totals.argmax())
        mine, theirs = state.after(worst)
        larger, smaller = np.maximum(mine, theirs), np.minimum(mine, theirs)
        least = larger.min()
        a, h, b = _place(np.where(larger == least, smaller, np.inf))
        tolerance = LESS * state.totals[worst]
        same = least <= state.totals[worst] and smaller[a, h, b] < state.totals[h] - tolerance
        if not same and least >= state.totals[worst] - tolerance:
            break
        state.swap((worst, a, h, b))
    return state.table


def search(table: Ints, together: Floats, pairs: int, enough: float = 0.0) -> Ints:
    """The best placement met in a walk from this one that looks at so many swaps, in at least 100 steps if quick ones.

    Each step makes the best swap out of the worst instance, whether it helps or not: the one with the least rise of
    Σ I^8 of the two, so that nearly the worst ones count as well. A copy does not soon come back to where it left,
    unless that gives the best placement so far. The walk ends at a largest I of ``enough``, a proved bound.
    """
    n, slots = table.shape
    if n * slots * slots > MOST_PAIRS:
        return table
    state = Swaps(table, together)
    barred_until = np.zeros((n, len(together)), np.int64)
    tenure = max(TENURE, slots // 2)
    best, best_table = state.totals.max(), state.table.copy()
    least_steps = min(LEAST_STEPS, LEAST_PAIRS // (n * slots * slots))
    for step in range(max(least_steps, pairs // (n * slots * slots + STEP_PAIRS))):
        if best <= enough * (1 + LESS):
            break
        worst = int(state.totals.argmax())
        mine, theirs = state.after(worst)
        top = state.totals[worst]
        rise = _eighth(mine / top) + _eighth(theirs / top) - _eighth(state.totals / top)[:, None]
        barred = barred_until > step
        again = barred[:, state.table[worst]].T[:, :, None] | barred[worst].take(state.table)
        rise[again & (np.maximum(mine, theirs) >= best * (1 - LESS))] = np.inf
        a, h, b = _place(rise)
        if rise[a, h, b] == np.inf:
            barred_until[:] = 0
            continue
        stay = step + tenure + step * 7919 % tenure
        barred_until[worst, state.table[worst, a]] = barred_until[h, state.table[h, b]] = stay
        state.swap((worst, a, h, b))
        if state.totals.max() < best * (1 - LESS):
            best, best_table = state.totals.max(), state.table.copy()
    return best_table


def _eighth(values: Floats) -> Floats:
    """Their eighth powers: multiplied out, for the general power takes longer than all the rest of a step."""
    square = values * values
    square *= square
    square *= square
    return square


def _place(scores: NDArray[np.float64]) -> tuple[int, int, int]:
    """Where the least score is, the first of equals."""
    a, h, b = np.unravel_index(int(scores.argmin()), scores.shape)
    return int(a), int(h), int(b)
