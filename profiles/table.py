"""CostTable: an exact row, else interpolation inside the measured range, else outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from profiles.families import Family
from profiles.pace import Pacing

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pace = Callable[[Sequence[Floats], "Floats | Ints"], Floats]

# A row's key is its curve's number above its place on the curve, so that one sorted array serves all curves at once.
_SHIFT = 44
LARGEST_AXIS_VALUE = (1 << _SHIFT) - 1
MOST_PLACES = 4_000_000
"""Up to this many (curve, size) places a grid remembers the row below each, instead of searching for it."""


@dataclass(frozen=True)
class Looked:
    """A lookup's outcome, flat arrays of one length: `seconds` is NaN where `outside`, `exact` marks measured rows."""

    seconds: Floats
    exact: Bools
    outside: Bools


class Grid:
    """The rows of one table that share their exact axes: curves along one axis, on a possibly ragged outer grid.

    `pace` gives u of outer and along columns (`profiles.pace`): log seconds are linear in it between two rows.
    """

    def __init__(
        self, outer: Sequence[Ints], along: Ints, seconds: Floats, estimated: Bools, pace: Pace | None
    ) -> None:
        self.knots = [np.unique(column) for column in outer]
        shape = tuple(len(knots) for knots in self.knots)
        cells = [np.searchsorted(knots, column) for knots, column in zip(self.knots, outer, strict=True)]
        cell = np.ravel_multi_index(tuple(cells), shape) if shape else np.zeros(len(along), dtype=np.int64)
        present, curve = np.unique(cell, return_inverse=True)
        self.curve_of_cell = np.full(int(np.prod(shape, dtype=np.int64)), -1, dtype=np.int64)
        self.curve_of_cell[present] = np.arange(len(present))
        self.shape = shape
        order = np.lexsort((along, curve))
        curve, self.along, self.seconds = curve[order].astype(np.int64), along[order], seconds[order]
        self.own = ~estimated[order]
        self.log_seconds = np.log(self.seconds)
        self.start = np.searchsorted(curve, np.arange(len(present)))
        self.stop = np.append(self.start[1:], len(curve)) - 1
        self._outer = [column[order][self.start].astype(np.float64) for column in outer]
        self._pace = pace
        self.pace = (
            np.log(self.along) if pace is None else pace([c[order].astype(np.float64) for c in outer], self.along)
        )
        self._steps = np.unique(self.along)
        self._key = (curve << _SHIFT) | self.along
        places = len(present) * len(self._steps)
        self._low = (
            self._below(np.arange(places) // len(self._steps), np.tile(self._steps, len(present)))
            if (places <= MOST_PLACES)
            else None
        )

    def bounds(self, axis: int) -> tuple[int, int]:
        """Smallest and largest measured value of an outer axis, by its position."""
        return int(self.knots[axis][0]), int(self.knots[axis][-1])

    @property
    def along_bounds(self) -> tuple[int, int]:
        """Smallest and largest measured value along the curves."""
        return int(self.along.min()), int(self.along.max())

    def _brackets(self, outer: Sequence[Floats]) -> tuple[list[tuple[Ints, Ints, Floats]], Bools]:
        outside = np.zeros(outer[0].shape if outer else (), dtype=bool)
        brackets = []
        for knots, value in zip(self.knots, outer, strict=True):
            high = np.clip(np.searchsorted(knots, value), 0, len(knots) - 1)
            low = np.where(knots[high] == value, high, np.maximum(high - 1, 0))
            outside = outside | (value < knots[0]) | (value > knots[-1])
            span = np.log(knots[high] / knots[low])
            inside = np.clip(value, knots[low], knots[high])
            weight = np.divide(np.log(inside / knots[low]), span, out=np.zeros_like(span), where=span > 0)
            brackets.append((low, high, weight))
        return brackets, outside

    def _corners(self, outer: Sequence[Floats], size: int) -> tuple[list[tuple[Ints, Floats]], Bools]:
        """The curves around each query with their weights; curve -1 with a weight above zero is a hole."""
        brackets, outside = self._brackets(outer)
        corners = []
        for choice in product((0, 1), repeat=len(brackets)):
            cell = np.zeros(size, dtype=np.int64)
            weight = np.ones(size)
            for side, (low, high, share), extent in zip(choice, brackets, self.shape, strict=True):
                cell = cell * extent + (high if side else low)
                weight = weight * (share if side else 1.0 - share)
            corners.append((self.curve_of_cell[cell], weight))
        return corners, np.broadcast_to(outside, (size,))

    def _below(self, curve: Ints, along: Ints) -> Ints:
        """The row of each curve at or before `along`, its first row before that."""
        low = np.searchsorted(self._key, (curve << _SHIFT) | along, side="right") - 1
        return np.clip(low, self.start[curve], self.stop[curve])

    def _on_curve(self, curve: Ints, along: Floats, step: Ints, pace: Floats) -> tuple[Floats, Ints, Bools]:
        """Log seconds at `pace`, the row at or before, and whether the query is off the curve."""
        if self._low is None:
            low = self._below(curve, np.floor(along).astype(np.int64))
        else:
            low = self._low[curve * len(self._steps) + step]
        last = self.stop[curve]
        high = np.minimum(low + 1, last)
        start, at_low = self.pace[low], self.log_seconds[low]
        span = self.pace[high] - start
        span[span <= 0.0] = np.inf
        log_seconds = at_low + (pace - start) / span * (self.log_seconds[high] - at_low)
        return log_seconds, low, (along < self.along[self.start[curve]]) | (along > self.along[last])

    def look_up(self, outer: Sequence[Floats], along: Floats) -> Looked:
        """Price flat queries: log-log linear along a curve, multilinear in the logarithms of the outer axes."""
        corners, outside = self._corners(outer, along.size)
        outside = outside.copy()
        step = np.maximum(np.searchsorted(self._steps, along, side="right") - 1, 0)
        plain = np.log(np.maximum(along, 1e-300))
        total = np.zeros(along.size)
        exact = np.zeros(along.size, dtype=bool)
        row = np.zeros(along.size)
        for curve, weight in corners:
            needed = weight > 0
            if not needed.any():
                continue
            missing = curve < 0
            safe = np.maximum(curve, 0) if missing.any() else curve
            pace = plain if self._pace is None else self._pace([column[safe] for column in self._outer], along)
            log_seconds, low, off = self._on_curve(safe, along, step, pace)
            outside |= needed & (missing | off)
            total += np.where(needed, weight * log_seconds, 0.0)
            alone = (weight == 1.0) & (self.along[low] == along)
            row = np.where(alone, self.seconds[low], row)
            exact |= alone & self.own[low]
            total = np.where(alone & ~self.own[low], self.log_seconds[low], total)
        exact &= ~outside
        seconds = np.where(exact, row, np.exp(total))
        return Looked(np.where(outside, np.nan, seconds), exact, outside)

    def clamp(self, outer: Sequence[Floats], along: Floats) -> tuple[list[Floats], Floats]:
        """The nearest point inside the measured range, axis by axis (it can still fall into a hole)."""
        inside = [np.clip(value, knots[0], knots[-1]) for value, knots in zip(outer, self.knots, strict=True)]
        corners, _ = self._corners(inside, along.size)
        least, most = np.zeros(along.size), np.full(along.size, np.inf)
        for curve, weight in corners:
            used = (weight > 0) & (curve >= 0)
            safe = np.maximum(curve, 0)
            least = np.where(used, np.maximum(least, self.along[self.start[safe]]), least)
            most = np.where(used, np.minimum(most, self.along[self.stop[safe]]), most)
        return inside, np.minimum(np.maximum(along, least), most)


class CostTable:
    """Measured rows of one family: columns of positive integers, and seconds. Immutable after construction.

    `estimated` numbers the rows that are no measurements of their own; `pacing` is how time moves between two rows.
    """

    def __init__(
        self,
        family: Family,
        columns: Mapping[str, Sequence[int] | Ints],
        seconds: Sequence[float] | Floats,
        estimated: Sequence[int] | Ints = (),
        pacing: Pacing | None = None,
    ) -> None:
        self.family = family
        self._columns = {axis: np.asarray(columns[axis], dtype=np.int64) for axis in family.axes}
        self._seconds = np.asarray(seconds, dtype=np.float64)
        self.estimated = np.zeros(len(self._seconds), dtype=bool)
        self.estimated[np.asarray(estimated, dtype=np.int64)] = True
        self.pacing = pacing or Pacing(family)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._seconds)

    @property
    def columns(self) -> dict[str, Ints]:
        """The axis columns, one int64 array of length `rows` each."""
        return dict(self._columns)

    @property
    def seconds(self) -> Floats:
        """Measured seconds, float64 of length `rows`."""
        return self._seconds

    @cached_property
    def grids(self) -> dict[tuple[int, ...], Grid]:
        """One grid for each combination of the exact axes."""
        family = self.family
        if not family.exact:
            groups, member = np.zeros((1, 0), dtype=np.int64), np.zeros(self.rows, dtype=np.int64)
        else:
            stacked = np.stack([self._columns[axis] for axis in family.exact], axis=1)
            groups, member = np.unique(stacked, axis=0, return_inverse=True)
        order = np.argsort(member.reshape(-1), kind="stable")
        cuts = np.searchsorted(member.reshape(-1)[order], np.arange(len(groups) + 1))
        grids = {}
        for number, group in enumerate(groups):
            rows = order[cuts[number] : cuts[number + 1]]
            outer = [self._columns[axis][rows] for axis in family.outer]
            along, seconds, estimated = self._columns[family.along][rows], self._seconds[rows], self.estimated[rows]
            grids[tuple(group.tolist())] = Grid(outer, along, seconds, estimated, self._pace(group.tolist()))
        return grids

    def _pace(self, group: Sequence[int]) -> Pace | None:
        """u of outer and along columns at the exact axes `group`; None for log-log."""
        family, pacing = self.family, self.pacing
        if pacing.plain:
            return None
        exact = {axis: float(value) for axis, value in zip(family.exact, group, strict=True)}

        def pace(outer: Sequence[Floats], along: Floats | Ints) -> Floats:
            axes = {axis: np.asarray(value) for axis, value in exact.items()}
            axes |= dict(zip(family.outer, outer, strict=True))
            return pacing.of({**axes, family.along: np.asarray(along, dtype=np.float64)})

        return pace

    def measured_range(self, axis: str) -> tuple[int, int]:
        """Smallest and largest measured value of an axis over all rows."""
        column = self._columns[axis]
        return int(column.min()), int(column.max())

    def look_up(self, query: Mapping[str, Floats]) -> Looked:
        """Price flat float64 arrays of one length, one for each axis. Nothing is raised: see `Looked.outside`."""
        size = query[self.family.along].size
        seconds, exact, outside = np.full(size, np.nan), np.zeros(size, dtype=bool), np.ones(size, dtype=bool)
        for rows, grid in self.split(query):
            found = grid.look_up([query[axis][rows] for axis in self.family.outer], query[self.family.along][rows])
            seconds[rows], exact[rows], outside[rows] = found.seconds, found.exact, found.outside
        return Looked(seconds, exact, outside)

    def clamp(self, query: Mapping[str, Floats]) -> dict[str, Floats]:
        """The query moved, where it must be, to the nearest measured point of its exact axes."""
        moved = {axis: value.copy() for axis, value in query.items()}
        for rows, grid in self.split(query):
            outer, along = grid.clamp([query[a][rows] for a in self.family.outer], query[self.family.along][rows])
            for axis, value in zip(self.family.outer, outer, strict=True):
                moved[axis][rows] = value
            moved[self.family.along][rows] = along
        return moved

    def split(self, query: Mapping[str, Floats]) -> list[tuple[Bools | slice, Grid]]:
        """The queries by the grid that answers them; queries with unmeasured exact axes are left out."""
        if not self.family.exact:
            return [(slice(None), self.grids[()])] if self.rows else []
        parts: list[tuple[Bools | slice, Grid]] = []
        columns = [query[axis] for axis in self.family.exact]
        if len(columns[0]) and all((column == column[0]).all() for column in columns):
            grid = self.grids.get(tuple(column[0].item() for column in columns))
            return [] if grid is None else [(slice(None), grid)]
        groups, member = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        for number, group in enumerate(groups):
            grid = self.grids.get(tuple(group.tolist()))
            if grid is not None:
                parts.append((member.reshape(-1) == number, grid))
        return parts
