"""The cost form of several papers, alpha + beta x amount, fitted to priced points, and how far it is from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.derivation.account import Floats


@dataclass(frozen=True)
class Line:
    """alpha + beta x amount; ``mape`` and ``worst`` are the mean and largest |line / price - 1| over the points."""

    alpha: float
    beta: float
    mape: float
    worst: float


def line_through(amounts: Floats, seconds: Floats) -> Line:
    """The line of least squared relative error with alpha and beta >= 0, not both 0."""
    x, y = amounts / seconds, 1.0 / seconds
    both = _solve(y, x) if len(amounts) > 1 else (-1.0, -1.0)
    level, slope = float(y.sum() / (y @ y)), float(x.sum() / (x @ x))
    choices = [pair for pair in (both, (level, 0.0), (0.0, slope)) if min(pair) >= 0.0]
    alpha, beta = min(choices, key=lambda pair: float(((pair[0] * y + pair[1] * x - 1.0) ** 2).sum()))
    alpha, beta = float(f"{alpha:.8e}"), float(f"{beta:.8e}")
    off = np.abs(alpha * y + beta * x - 1.0)
    return Line(alpha, beta, float(f"{off.mean():.4g}"), float(f"{off.max():.4g}"))


def _solve(y: Floats, x: Floats) -> tuple[float, float]:
    """Least squares of alpha y + beta x = 1."""
    yy, xy, xx = float(y @ y), float(x @ y), float(x @ x)
    determinant = yy * xx - xy * xy
    if determinant <= 1e-12 * yy * xx:
        return -1.0, -1.0
    one_y, one_x = float(y.sum()), float(x.sum())
    return (one_y * xx - one_x * xy) / determinant, (one_x * yy - one_y * xy) / determinant
