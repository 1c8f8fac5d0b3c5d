"""base + slope x through measured times, neither negative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.json_text import Json
from profiles.fitting.quality import short
from profiles.least_squares import fit_not_negative


@dataclass(frozen=True)
class Straight:
    """Seconds, and median and p90 of the relative errors of the rows behind them; no rows: as stated."""

    base_s: float
    slope_s: float
    rows: int
    median: float
    p90: float

    def account(self) -> Json:
        """For the reader of a plan."""
        return dict(vars(self))


def straight(amounts: Sequence[float], seconds: Sequence[float]) -> Straight:
    """The line; through the origin where all amounts are one, and all base where that is none."""
    x, t = np.array(amounts, dtype=np.float64), np.array(seconds)
    basis = np.stack([np.ones_like(x), x], axis=1)
    if not x.any():
        basis[:, 1] = 0.0
    elif np.unique(x).size == 1:
        basis[:, 0] = 0.0
    base, slope = (float(f"{value:.8e}") for value in fit_not_negative(basis, t).tolist())
    off = np.abs(basis @ np.array([base, slope]) / t - 1)
    return Straight(base, slope, len(t), short(float(np.median(off))), short(float(np.percentile(off, 90))))
