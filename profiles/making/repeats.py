"""One row a key: repeats of a measurement are merged to their median."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def merge_repeats(
    columns: Mapping[str, Ints], seconds: Floats, axes: Sequence[str]
) -> tuple[dict[str, Ints], Floats, Floats]:
    """Columns and seconds with one row a key, sorted by key; and for each row given the median of its repeats.

    The last is NaN for rows without a repeat. The median, not the minimum: a plan should state the typical time. A
    spike among three repeats does not count; of two repeats the mean is taken.
    """
    order = np.lexsort(tuple(columns[axis] for axis in reversed(axes)))
    ordered = {axis: columns[axis][order] for axis in axes}
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.any([column[1:] != column[:-1] for column in ordered.values()], axis=0)
    starts = np.flatnonzero(first)
    parts = np.split(seconds[order], starts[1:])
    merged = np.array([np.median(part) for part in parts]) if len(order) else seconds.copy()
    count = np.diff(np.append(starts, len(order)))
    centre = np.empty(len(order))
    centre[order] = np.repeat(np.where(count > 1, merged, np.nan), count)
    return {axis: column[starts] for axis, column in ordered.items()}, merged, centre


def positions(keys: Mapping[str, Ints], rows: Mapping[str, Ints], axes: Sequence[str]) -> Ints:
    """For each of `rows` the number of its row among `keys`, which are one a key; -1 where there is none."""
    stacked = np.stack([np.concatenate([keys[axis], rows[axis]]) for axis in axes])
    number = np.unique(stacked, axis=1, return_inverse=True)[1].reshape(-1)
    many = len(keys[axes[0]])
    place = np.full(int(number.max(initial=-1)) + 1, -1, dtype=np.int64)
    place[number[:many]] = np.arange(many)
    return place[number[many:]]
