"""Multipliers from the step times of measured runs: relative least squares, drawn towards the prices as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.derivation.account import Floats
from planner.derivation.training.calibration import Calibration
from planner.papers.layout.bound import rank_bounds_s
from planner.papers.layout.calibration.priced import PricedRuns
from planner.papers.layout.evaluate import evaluate
from planner.papers.layout.layouts import groups
from planner.papers.layout.stage_times import stages
from profiles.least_squares import fit_positive

NOISE = 0.05
"""Relative error of a step time that no multiplier explains."""
DOUBT = {"gemm": 0.1, "attention": 0.2, "elementwise": 1.0, "communication": 0.5}
"""How far a multiplier may well lie from 1 before any run is seen, in logarithms: products and attention come from
measured rows; what lies between them is a count of bytes at the peak bandwidth, which no unfused code reaches."""
ROUNDS = 2
STEPS = 20
PROBE = 0.01
LEAST_S = 1e-12
LEAST_TIMES, MOST_TIMES = 1e-2, 1e2
"""Of a multiplier, as a calibration may have them."""

Measured = Sequence[tuple[PricedRuns, Sequence[float]]]
"""Priced runs and their step times [s], model by model."""


class _Line(NamedTuple):
    """Step times near a point: of every run ``ratio`` x the largest of its ranks' bounds + ``rest_s``.

    Bounds are ``at`` the point and ``slope`` (ranks of all runs, multipliers) around it; ``starts``: each run's first.
    """

    point: Floats
    at: Floats
    slope: Floats
    starts: npt.NDArray[np.int64]
    ratio: Floats
    rest_s: Floats

    def seconds(self, values: Floats) -> Floats:
        bounds = np.maximum.reduceat(self.at + self.slope @ (values - self.point), self.starts)
        return np.maximum(self.ratio * bounds + self.rest_s, LEAST_S)


def fit_calibration(measured: Measured) -> Calibration:
    """The multipliers that bring the step times closest to the measured ones. No run: all 1.

    Each is a pseudo-run of its own, so that what the runs do not tell stays 1; runs far off count linearly. A few
    rounds, each around what the one before found: there the pipelines are replayed, between they follow their bounds.
    """
    seconds = [each for _, times in measured for each in times]
    values = np.ones(len(DOUBT))
    if not seconds:
        return Calibration()
    pull = np.array([NOISE / doubt for doubt in DOUBT.values()])
    target = np.concatenate([seconds, np.ones(len(values))])
    for _ in range(ROUNDS):
        line = _line([runs for runs, _ in measured], values)

        def model(tried: Floats, line: _Line = line) -> Floats:
            return np.concatenate([line.seconds(tried), tried**pull])

        values = fit_positive(model, values, target, steps=STEPS)
    return _calibration(values)


def step_times_s(runs: PricedRuns, calibration: Calibration) -> list[float]:
    """The step time of every run under a calibration."""
    return [
        evaluate(problem, layout).step_time_s
        for problem, layout in zip(runs.under(calibration), runs.layouts, strict=True)
    ]


def _calibration(values: Floats) -> Calibration:
    """Experts are products, too. Five digits: no more is known. What no run tells may drift: it ends at the bounds."""
    bounded = np.clip(values, LEAST_TIMES, MOST_TIMES).tolist()
    rounded = {name: float(f"{value:.4e}") for name, value in zip(DOUBT, bounded, strict=True)}
    return Calibration(**rounded, experts=rounded["gemm"])


def _line(priced: Sequence[PricedRuns], point: Floats) -> _Line:
    at = _bounds(priced, point)
    probes = [_bounds(priced, point + step) for step in PROBE * np.eye(len(point))]
    slope = np.stack([(np.concatenate(probe) - np.concatenate(at)) / PROBE for probe in probes], axis=1)
    ratio, rest = [], []
    bound = iter([float(each.max()) for each in at])
    for runs in priced:
        for problem, layout in zip(runs.under(_calibration(point)), runs.layouts, strict=True):
            found, least = evaluate(problem, layout), next(bound)
            ratio.append(found.pipeline_s / least if least > 0 else 1.0)
            rest.append(found.step_time_s - found.pipeline_s)
    starts = np.cumsum([0, *(len(each) for each in at[:-1])])
    return _Line(point, np.concatenate(at), slope, starts, np.array(ratio), np.array(rest))


def _bounds(priced: Sequence[PricedRuns], values: Floats) -> list[Floats]:
    """The bounds of every run's ranks [s]."""
    found = []
    for runs in priced:
        for problem, layout in zip(runs.under(_calibration(values)), runs.layouts, strict=True):
            sizes = groups(problem, layout)
            held = stages(problem, layout, sizes)
            found.append(np.array(rank_bounds_s(held, layout.pp, sizes.num_micro_batches)))
    return found
