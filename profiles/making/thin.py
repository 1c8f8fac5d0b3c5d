"""Fewer rows, nearly the same prices: drop what its neighbours on the curve already say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from profiles.making.monotone import lines
from profiles.pace import Pacing

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def thinned_rows(columns: Mapping[str, Ints], seconds: Floats, pacing: Pacing, tolerance: float) -> Bools:
    """A mask over rows: both ends of each curve stay, and the kept rows give every other back.

    Interpolation at the table's pace gives it back within a factor of 1 + `tolerance` (Ramer, Douglas and Peucker's
    split at the worst row).
    """
    keep = np.zeros(len(seconds), dtype=bool)
    allowed = np.log1p(tolerance)
    pace = pacing.of({axis: column.astype(np.float64) for axis, column in columns.items()})
    for line in lines(columns, pacing.family.along):
        x, y = pace[line], np.log(seconds[line])
        kept = [0, len(line) - 1]
        spans = [(0, len(line) - 1)]
        while spans:
            first, last = spans.pop()
            if last - first < 2:
                continue
            inner = slice(first + 1, last)
            straight = y[first] + (x[inner] - x[first]) * (y[last] - y[first]) / (x[last] - x[first])
            error = np.abs(y[inner] - straight)
            worst = first + 1 + int(np.argmax(error))
            if error.max() > allowed:
                kept.append(worst)
                spans += [(first, worst), (worst, last)]
        keep[line[kept]] = True
    return keep
