"""Robust least squares with scipy: errors are relative, and rows that are far off pull little."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from profiles.errors import ProfileError

if TYPE_CHECKING:
    from types import ModuleType

Floats = npt.NDArray[np.float64]

KNEE = 0.05
"""Relative errors below count by their square, above by their size (soft L1)."""
STEPS, FIRST = 40, 6
NOTHING = 1e-9
"""A term that reaches this share of no row's time is a rounding error of zero."""
RANGE = float(np.log(1e4))


@cache
def optimizer() -> ModuleType:
    """`scipy.optimize`. Raises `ProfileError` that says how to install it."""
    try:
        return import_module("scipy.optimize")
    except ImportError:
        raise ProfileError("fits need scipy: pip install 'girih[fit]'", code="unknown_profile") from None


def fit_linear(terms: Floats, seconds: Floats) -> Floats:
    """Coefficients (k,), none negative, of `terms` (n, k) that bring their sum close to `seconds` (n,).

    Minimises the soft L1 of log(terms @ coefficients / seconds): non-negative least squares, reweighted and taken
    around the last sum. Logarithms, because relative to a row that is 20 times too quick all others weigh nothing.
    """
    size = np.linalg.norm(terms / seconds[:, None], axis=0)
    size = np.where(size > 0, size, 1.0)
    scaled = terms / size
    nnls = optimizer().nnls
    found, total = np.zeros(terms.shape[1]), seconds
    for step in range(STEPS):
        # The first steps divide by the larger of both, so that no row outweighs the rest before there is a level.
        scale = np.maximum(seconds, total) if step < FIRST else total
        error = (total - seconds) / scale if step < FIRST else np.log(total / seconds)
        root = (1.0 + (error / KNEE) ** 2) ** -0.25
        target = seconds / scale if step < FIRST else 1.0 - error
        before = found
        found = np.asarray(nnls(scaled / scale[:, None] * root[:, None], target * root)[0], dtype=np.float64)
        total = np.maximum(scaled @ found, 1e-3 * seconds)
        if step > FIRST and (np.abs(found - before) <= 1e-5 * found.max()).all():
            break
    found[(scaled * found / total[:, None]).max(axis=0) < NOTHING] = 0.0
    return np.asarray(found / size)


def fit_curved(model: Callable[[Floats], Floats], start: Floats, most: Floats, seconds: Floats) -> Floats:
    """Positive coefficients (k,) that bring `model(coefficients)` (n,) close to `seconds` (n,).

    `scipy.optimize.least_squares` with the soft L1 loss on the logarithms of both, from `start`, within 1e-4..1e4 of
    it and at most `most` (inf: no limit). Deterministic.
    """
    low, high = _bounds(start, most)
    centre, target = np.minimum(np.log(start), high - np.log(2.0)), np.log(seconds)

    def residuals(logs: Floats) -> Floats:
        return np.asarray(np.log(model(np.exp(logs))) - target)

    found = optimizer().least_squares(residuals, centre, bounds=(low, high), loss="soft_l1", f_scale=KNEE, max_nfev=200)
    return np.asarray(np.exp(found.x), dtype=np.float64)


def at_bound(found: Floats, start: Floats, most: Floats) -> npt.NDArray[np.bool_]:
    """Which coefficients of `fit_curved` lie within a thousandth of a bound."""
    low, high = _bounds(start, most)
    logs = np.log(found)
    return np.asarray((logs < low + 1e-3) | (logs > high - 1e-3))


def _bounds(start: Floats, most: Floats) -> tuple[Floats, Floats]:
    centre = np.log(start)
    high = np.minimum(centre + RANGE, np.log(most))
    return np.minimum(centre, high) - RANGE, high
