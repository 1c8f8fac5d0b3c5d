"""The curves of a table: rows as measured where they rise, what their siblings say where they do not.

A curve keeps the heaviest set of its rows that do not get faster with size, where a row weighs the less the more its
siblings contradict it. What falls out (a spike, a step back) and what was not measured between two rows of a curve is
estimated from the siblings (`profiles.making.siblings`), held between the kept neighbours. Without siblings a row that
is nearly between them stays at the nearer of their times, and others are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profiles.families import Family
from profiles.making.monotone import hold_ends, lines, rising_rows
from profiles.making.siblings import Siblings, have_siblings

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DOUBTED = 0.05
"""A row this far from what its siblings say (relative) weighs half."""


NEARLY = 0.1
"""Without siblings, a row that is this near (relative) to its kept neighbours stays, at the nearer of their times."""


@dataclass(frozen=True)
class Curves:
    """Rows of one table, one a key and rising along each curve; `estimated` ones are not measurements.

    `by_siblings` says whether estimates come from siblings, else from the neighbours on the curve.
    """

    columns: dict[str, Ints]
    seconds: Floats
    estimated: Bools
    dropped: int
    filled: int
    by_siblings: bool

    @property
    def replaced(self) -> int:
        """Measured rows that are in the table with another time than their own."""
        return int(np.count_nonzero(self.estimated)) - self.filled


def rising_curves(
    family: Family,
    columns: Mapping[str, Ints],
    seconds: Floats,
    element_bytes: float,
    multiprocessors: int | None,
    wanted: Mapping[str, Ints] | None = None,
) -> Curves:
    """The curves of rows that are one a key; `wanted` are keys to estimate besides, where siblings allow it."""
    siblings, weight = None, None
    if have_siblings(family, columns):
        siblings = Siblings(family, columns, seconds, element_bytes, multiprocessors)
        weight = 1.0 / (1.0 + (np.log(seconds / siblings.seconds(columns)) / DOUBTED) ** 2)
    keep = np.ones(len(seconds), dtype=bool)
    if family.name == "encoder_attention":
        # Square attention of more heads is more work, so that axis must rise too.
        keep = rising_rows(columns, seconds, "heads", keep, weight)
    keep = rising_rows(columns, seconds, family.along, keep, weight)
    if siblings is None:
        return _by_themselves(family, columns, seconds, keep)
    extra = _inner_holes(family, columns) if wanted is None else dict(wanted)
    whole = {axis: np.concatenate([column, extra[axis]]) for axis, column in columns.items()}
    estimate = siblings.seconds(whole)
    times = np.concatenate([seconds, np.full(len(whole[family.along]) - len(seconds), np.nan)])
    measured = np.concatenate([keep, np.zeros(len(times) - len(keep), dtype=bool)])
    times, usable = _between_kept(family, whole, times, measured, estimate)
    order = np.lexsort(tuple(whole[axis][usable] for axis in reversed(family.axes)))
    rows = np.flatnonzero(usable)[order]
    own = len(seconds)
    dropped, filled = int((~usable[:own]).sum()), int(usable[own:].sum())
    return Curves({axis: c[rows] for axis, c in whole.items()}, times[rows], ~measured[rows], dropped, filled, True)


def _by_themselves(family: Family, columns: Mapping[str, Ints], seconds: Floats, keep: Bools) -> Curves:
    """Curves whose rows know of no siblings: what is nearly between its kept neighbours stays, the rest is left out."""
    times, usable = _between_kept(family, columns, seconds, keep, np.where(keep, np.nan, seconds))
    usable &= np.abs(np.log(times / seconds)) <= np.log1p(NEARLY)
    times, usable = _between_kept(family, columns, seconds, keep, np.where(usable, times, np.nan))
    times, usable, held = hold_ends(columns, times, family.along, usable)
    kept = {axis: column[usable] for axis, column in columns.items()}
    return Curves(kept, times[usable], (held | ~keep)[usable], int((~usable).sum()), 0, False)


def _between_kept(
    family: Family, columns: Mapping[str, Ints], seconds: Floats, kept: Bools, estimate: Floats
) -> tuple[Floats, Bools]:
    """Seconds with rows that were not kept at their estimate, held between kept neighbours; and which are usable."""
    seconds, usable = seconds.copy(), kept | np.isfinite(estimate)
    for whole in lines(columns, family.along):
        line = whole[usable[whole]]
        own = kept[line]
        if own.all():
            continue
        if not own.any():
            usable[line] = False
            continue
        below = np.maximum.accumulate(np.where(own, seconds[line], 0.0))
        above = np.minimum.accumulate(np.where(own, seconds[line], np.inf)[::-1])[::-1]
        guess = np.where(own, seconds[line], np.clip(estimate[line], below, above))
        seconds[line] = np.maximum.accumulate(guess)
    return seconds, usable


def _inner_holes(family: Family, columns: Mapping[str, Ints]) -> dict[str, Ints]:
    """Keys between two rows of a curve at which a sibling of the same exact axes was measured and it was not."""
    found: dict[str, list[Ints]] = {axis: [] for axis in family.axes}
    knots: dict[tuple[int, ...], Ints] = {}
    for line in lines(columns, family.along):
        group = tuple(int(columns[axis][line[0]]) for axis in family.exact)
        if group not in knots:
            alike = np.ones(len(columns[family.along]), dtype=bool)
            for axis, value in zip(family.exact, group, strict=True):
                alike &= columns[axis] == value
            knots[group] = np.unique(columns[family.along][alike])
        own = columns[family.along][line]
        missing = np.setdiff1d(knots[group], own, assume_unique=True)
        missing = missing[(missing > own[0]) & (missing < own[-1])]
        for axis in family.axes:
            same = np.full(len(missing), columns[axis][line[0]], dtype=np.int64)
            found[axis].append(missing if axis == family.along else same)
    return {axis: np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64) for axis, parts in found.items()}
