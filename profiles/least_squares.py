"""Least squares for coefficients of one sign, in numpy alone so that reading a profile needs nothing else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def fit_not_negative(basis: Floats, target: Floats) -> Floats:
    """Coefficients (k,), none negative, of least squared distance of `basis` (n, k) times them to `target` (n,).

    For few columns: the best of all sets of coefficients that are not zero is the best there is, as it is the free fit
    of its own set. Columns may differ in size by any factor.
    """
    scale = np.abs(basis).max(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    number = basis.shape[1]
    nearest = (math.inf, np.zeros(number))
    for size in range(number, 0, -1):
        for kept in itertools.combinations(range(number), size):
            columns = list(kept)
            found = np.linalg.lstsq(basis[:, columns] / scale[columns], target, rcond=None)[0]
            if (found < 0).any():
                continue
            coefficients = np.zeros(number)
            coefficients[columns] = found / scale[columns]
            left = float(np.sum((basis @ coefficients - target) ** 2))
            if left < nearest[0]:
                nearest = (left, coefficients)
    return nearest[1]


def fit_positive(model: Callable[[Floats], Floats], start: Floats, measured: Floats, *, steps: int = 60) -> Floats:
    """Coefficients (k,) that bring `model(coefficients)` (n,) close to `measured` (n,), all positive.

    Levenberg-Marquardt on the logarithms of coefficients and seconds, with Huber weights at 15 % so that spikes pull
    little. Deterministic: no random start, a fixed number of steps. Coefficients stay within 1e-4..1e4 of `start`.
    """
    target = np.log(measured)
    low, high = np.log(start) - _RANGE, np.log(start) + _RANGE

    def residuals(log_coefficients: Floats) -> Floats:
        return np.log(model(np.exp(log_coefficients))) - target

    def loss(errors: Floats) -> float:
        size = np.abs(errors)
        return float(np.sum(np.where(size < _KNEE, 0.5 * errors**2, _KNEE * (size - 0.5 * _KNEE))))

    point = np.log(start)
    errors = residuals(point)
    damping = 1e-2
    for _ in range(steps):
        jacobian = np.stack([(residuals(point + step) - errors) / _STEP for step in np.eye(len(point)) * _STEP], axis=1)
        weights = np.minimum(1.0, _KNEE / np.maximum(np.abs(errors), 1e-12))
        normal = jacobian.T @ (weights[:, None] * jacobian)
        gradient = jacobian.T @ (weights * errors)
        scale = np.diag(np.maximum(np.diag(normal), 1e-9))
        for _ in range(8):
            trial = np.clip(point - np.linalg.solve(normal + damping * scale, gradient), low, high)
            changed = residuals(trial)
            if loss(changed) < loss(errors):
                point, errors, damping = trial, changed, max(damping / 5, 1e-9)
                break
            damping *= 4
        else:
            break
    fitted: Floats = np.exp(point)
    return fitted


_KNEE = 0.15
_STEP = 1e-4
_RANGE = float(np.log(1e4))
