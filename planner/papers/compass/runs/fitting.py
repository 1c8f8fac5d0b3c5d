"""Coefficients from measured runs (page, "Fitting A, B, C"): lines through stage sweeps, curves through T(d).

Residuals are relative, so that short runs count as much as long ones; no coefficient is negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.papers.compass.problem import Stage
from planner.papers.compass.runs.document import ENOUGH_DEGREES, ENOUGH_SPAN, WELL_CHOSEN, WELL_FITTED, Curve
from planner.papers.compass.times import Floats
from profiles.least_squares import fit_not_negative

FEWEST_DEGREES = 3
"""A curve has three coefficients."""
BEND = 4.0
"""How many times less variance two curves must leave than one."""


@dataclass(frozen=True)
class Line:
    """t = startup + slope x amount [s], and the largest relative error at the runs."""

    startup_s: float
    slope_s: float
    max_relative_error: float

    def stage(self, amount: float) -> Stage:
        """The stage whose whole work is ``amount``."""
        return Stage(startup_s=self.startup_s, payload_s=self.slope_s * amount)


@dataclass(frozen=True)
class Curves:
    """T(d) in one piece or two, and the largest relative error at the runs."""

    curves: tuple[Curve, ...]
    max_relative_error: float

    def at(self, d: int) -> float:
        """T(d) [s] of the curve whose degrees reach to ``d``."""
        curve = next((curve for curve in self.curves if d <= curve.to_degree), self.curves[-1])
        return curve.A_s * d + curve.B_s + curve.C_s / d


class Slower(NamedTuple):
    """How many times slower each stage runs beside the other, whatever the number."""

    comm: float
    gemm: float


def fit_line(amounts: Sequence[float], seconds: Sequence[float]) -> Line:
    """The line through runs of one stage at different amounts of work, two of them at least."""
    # Amounts are scaled to 1, so that bytes and start-ups meet in one matrix.
    most = max(amounts)
    x = np.array(amounts) / most
    (startup_s, slope_s), error = _fitted(np.stack([np.ones_like(x), x], axis=1), np.array(seconds))
    return Line(startup_s, slope_s / most, error)


def fit_curves(degrees: Sequence[int], seconds: Sequence[float]) -> Curves | None:
    """A d + B + C / d through the times of distinct ascending degrees; None for fewer than three.

    Two curves where the bound stage visibly changes: each through four degrees at least, and much nearer than one.
    """
    n = len(degrees)
    if n < FEWEST_DEGREES:
        return None
    one = _piece(degrees, seconds)
    best, least = Curves((one[0],), one[1]), one[2] / max(n - 3, 1)
    bent: tuple[float, Curves] | None = None
    for cut in range(ENOUGH_DEGREES, n - ENOUGH_DEGREES + 1):
        low, high = _piece(degrees[:cut], seconds[:cut]), _piece(degrees[cut:], seconds[cut:])
        left = (low[2] + high[2]) / max(n - 6, 1)
        if bent is None or left < bent[0]:
            bent = (left, Curves((low[0], high[0]), max(low[1], high[1])))
    # What is left by rounding alone bends nothing.
    if bent is not None and bent[0] * BEND < least and best.max_relative_error > 1e-9:
        return bent[1]
    return best


def fit_contention(comm: Stage, gemm: Stage, degrees: Sequence[int], seconds: Sequence[float]) -> Slower:
    """mu of each stage: the median over the degrees at which it is the slower one, never below 1."""
    found: dict[str, list[float]] = {"comm": [], "gemm": []}
    for d, time_s in zip(degrees, seconds, strict=True):
        t_c, t_g = comm.startup_s + comm.payload_s / d, gemm.startup_s + gemm.payload_s / d
        if d > 1:
            found["comm" if t_c >= t_g else "gemm"].append((time_s - t_c - t_g) / ((d - 1) * max(t_c, t_g)))
    slower = {name: max(1.0, float(np.median(values))) for name, values in found.items() if values}
    return Slower(slower.get("comm", 1.0), slower.get("gemm", 1.0))


def believed(curves: Curves | None, degrees: Sequence[int], regret: float | None) -> bool:
    """Whether the curves may stand for the runs."""
    if curves is None or regret is None:
        return False
    enough = len(degrees) >= ENOUGH_DEGREES and degrees[-1] >= ENOUGH_SPAN * degrees[0]
    return enough and curves.max_relative_error <= WELL_FITTED and regret <= WELL_CHOSEN


def _piece(degrees: Sequence[int], seconds: Sequence[float]) -> tuple[Curve, float, float]:
    """The curve through some runs, its largest relative error, and the sum of squared ones."""
    d, t = np.array(degrees, dtype=np.float64), np.array(seconds)
    basis = np.stack([d, np.ones_like(d), 1 / d], axis=1)
    (A, B, C), error = _fitted(basis, t)
    curve = Curve(from_degree=degrees[0], to_degree=degrees[-1], A_s=A, B_s=B, C_s=C)
    return curve, error, float(np.sum((basis @ np.array([A, B, C]) / t - 1) ** 2))


def _fitted(basis: Floats, seconds: Floats) -> tuple[list[float], float]:
    """The coefficients >= 0 of least squared relative error, and the largest such error."""
    relative = basis / seconds[:, None]
    coefficients = fit_not_negative(relative, np.ones(len(seconds)))
    return coefficients.tolist(), float(np.abs(relative @ coefficients - 1).max())
