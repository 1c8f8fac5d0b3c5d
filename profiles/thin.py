"""Fewer rows, nearly the same prices: drop what its neighbours on the curve already say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from profiles.monotone import lines

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def thinned_rows(columns: Mapping[str, Ints], seconds: Floats, along: str, tolerance: float, among: Bools) -> Bools:
    """A mask over rows, some of `among`.

    Both ends of each curve stay, and log-log interpolation between the kept rows gives every dropped row back within a
    factor of 1 + `tolerance` (Ramer, Douglas and Peucker's split at the worst row).
    """
    keep = np.zeros(len(seconds), dtype=bool)
    allowed = np.log1p(tolerance)
    for whole in lines(columns, along):
        line = whole[among[whole]]
        if not len(line):
            continue
        x, y = np.log(columns[along][line]), np.log(seconds[line])
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
