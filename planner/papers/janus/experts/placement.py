"""The page's placement of copies: greedy by load a copy, then swaps out of the worst instance (rule 9)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_SWAPS = 200
"""Swaps of the page's second phase."""
LESS = 1e-12
"""Relative: what falls by no more has not fallen, it is rounding."""


def coactivations(table: Ints, together: Floats) -> Floats:
    """float64 [n]: I(g) of instances whose experts are the rows of a table [n, slots], -1 a free slot."""
    rows = (row[row >= 0] for row in table)
    return np.array([together[np.ix_(row, row)].sum() / 2 for row in rows])


def full(instances: int, experts: int) -> Ints:
    """int64 [n, E]: every expert on every instance, as where there are at least E slots."""
    return np.tile(np.arange(experts, dtype=np.int64), (instances, 1))


def greedy(load: Floats, together: Floats, copies: Ints, slots: int, instances: int) -> Ints:
    """int64 [n, slots]: experts by falling load a copy, then id, each copy where it adds the least co-activation.

    Among equals the instance with the fewest used slots, then the lowest id. Copies must fill the slots exactly.
    """
    builder = _Builder(together, slots, instances)
    for expert in np.lexsort((np.arange(len(load)), -load / copies)).tolist():
        for _ in range(int(copies[expert])):
            builder.add(expert)
    return builder.table


def _largest_but(values: Floats) -> Floats:
    """float64 [n]: the largest of all the others."""
    first = int(values.argmax())
    others = np.full(len(values), values[first])
    others[first] = np.delete(values, first).max(initial=-np.inf)
    return others


class _Builder:
    """A placement that grows: ``added[g, e]`` is what e would add to instance g, -1 in the table a free slot."""

    def __init__(self, together: Floats, slots: int, instances: int) -> None:
        self._together, self._slots = together, slots
        self.table = np.full((instances, slots), -1, np.int64)
        self._used = np.zeros(instances, np.int64)
        self._added = np.zeros((instances, len(together)))
        self._inside = np.zeros((instances, len(together)), bool)
        self._totals = np.zeros(instances)

    def add(self, expert: int) -> None:
        """Place a copy, if need be where an exchange frees a slot."""
        open_to = np.flatnonzero((self._used < self._slots) & ~self._inside[:, expert])
        if len(open_to):
            added = self._added[open_to, expert]
            least = open_to[added == added.min()]
            self._put(expert, int(least[self._used[least].argmin()]))
            return
        # What has a free slot holds the expert already: another instance passes one of its experts on.
        instance, moved, other = self._exchange(expert)
        self._take(moved, instance)
        self._put(moved, other)
        self._put(expert, instance)

    def _exchange(self, expert: int) -> tuple[int, int, int]:
        """The instance without the expert, the expert that it passes on, and to whom: the least largest I."""
        totals = self._totals
        without = np.flatnonzero(~self._inside[:, expert])
        moved = self.table[without]
        gained = (
            self._added[without, expert][:, None] - self._together[moved, expert] - self._added[without[:, None], moved]
        )
        best: tuple[float, int, int, int] | None = None
        for other in np.flatnonzero(self._used < self._slots).tolist():
            rest = totals.copy()
            rest[other] = -np.inf
            apart = _largest_but(rest)[without]
            after = np.maximum(
                np.maximum(totals[without][:, None] + gained, apart[:, None]), totals[other] + self._added[other, moved]
            )
            after[self._inside[other, moved]] = np.inf
            row, place = divmod(int(after.argmin()), after.shape[1])
            candidate = (float(after[row, place]), int(without[row]), int(moved[row, place]), other)
            best = candidate if best is None or candidate < best else best
        if best is None:
            raise ValueError("copies do not fit the slots")
        return best[1:]

    def _put(self, expert: int, instance: int) -> None:
        self.table[instance, self._used[instance]] = expert
        self._used[instance] += 1
        self._inside[instance, expert] = True
        self._totals[instance] += self._added[instance, expert]
        self._added[instance] += self._together[expert]

    def _take(self, expert: int, instance: int) -> None:
        row = self.table[instance]
        place = int(np.flatnonzero(row == expert)[0])
        last = int(self._used[instance]) - 1
        row[place], row[last] = row[last], -1
        self._used[instance] = last
        self._inside[instance, expert] = False
        self._added[instance] -= self._together[expert]
        self._totals[instance] -= self._added[instance, expert]
