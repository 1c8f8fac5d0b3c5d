"""How good a fit is, over the rows it saw and over rows it did not see."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from profiles.fitting.document import Quality

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Predict = Callable[[Bools], Floats]

FOLDS = 5
MOST_LEFT_OUT_SINGLY = 40


def quality(how: str, predicted: Floats, seconds: Floats) -> Quality | None:
    """Mean, median and p90 of |predicted / measured - 1| over rows with a prediction; None if there are none."""
    known = np.isfinite(predicted)
    if not known.any():
        return None
    off = np.abs(predicted[known] / seconds[known] - 1.0)
    return Quality(
        how=how,
        rows=len(off),
        mape=short(float(off.mean())),
        median=short(float(np.median(off))),
        p90=short(float(np.percentile(off, 90))),
    )


def r_squared(predicted: Floats, seconds: Floats) -> float | None:
    """1 - residual / total sum of squares of log seconds; None if all seconds are equal. Below 0: worse than a mean."""
    logs = np.log(seconds)
    total = float(((logs - logs.mean()) ** 2).sum())
    return None if total < 1e-12 else short(1.0 - float(((np.log(predicted) - logs) ** 2).sum()) / total)


def held_out(predict: Predict, seconds: Floats, fewest: int) -> Quality | None:
    """Errors on rows left out of the fit: one by one up to 40 rows, else in 5 folds (row i in fold i mod 5).

    `predict(kept)` fits the kept rows and prices all; None if fewer than `fewest` rows would be left to fit.
    """
    rows = len(seconds)
    singly = rows <= MOST_LEFT_OUT_SINGLY
    folds = rows if singly else FOLDS
    if rows - -(-rows // max(folds, 1)) < fewest:
        return None
    predicted, fold = np.full(rows, np.nan), np.arange(rows) % folds
    for number in range(folds):
        kept = fold != number
        predicted[~kept] = predict(kept)[~kept]
    return quality("leave one out" if singly else f"{FOLDS} folds", predicted, seconds)


def short(value: float) -> float:
    """Five significant digits: far below the noise of any measurement, and the same on every machine."""
    return float(f"{value:.4e}")
