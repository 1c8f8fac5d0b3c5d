"""Timing one operation: warm up, repeat until the median stands still or the share of the budget is used."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Timer = Callable[[int, int], tuple[list[float], float]]
"""timer(count, loops): seconds of one run, `count` times, each timed over `loops` runs in a row; and the seconds that
all of it took, waiting included."""

SURE_SAMPLES = 3
"""Are taken whatever the budget says, of operations up to `LONG_S` seconds; of longer ones a single one."""
LONG_S = 2.0
LEAST_SAMPLES = 5
"""Are taken before the median may be called steady."""
MOST_SAMPLES = 400
STEADY = 0.01
"""The median's standard error, as a share of it, that is good enough."""


@dataclass(frozen=True)
class Timing:
    """The median of `count` samples in seconds and their interquartile range over it."""

    median_s: float
    spread: float
    count: int


def time_operation(timer: Timer, budget_s: float, timed_s: float) -> Timing:
    """Time an operation with `timer` for about `budget_s` seconds.

    A sample spans at least `timed_s` seconds, so that reading the clock does not count; shorter operations run in a
    loop. Beyond the budget `least_runs` are made all the same.
    """
    (once, *_), used = timer(1, 1)
    loops = _loops(once, timed_s)
    if loops > 1:  # the first run was cold
        (warm, *_), took = timer(1, loops)
        once, used = min(once, warm), used + took
        loops = _loops(once, timed_s)
    samples: list[float] = []
    sample_s = once * loops
    sure = least_runs(once) - 1
    while len(samples) < sure or used < budget_s:
        found, took = timer(_batch(len(samples), sample_s, budget_s - used), loops)
        samples += found
        used, sample_s = used + took, took / len(found)
        steady = len(samples) >= LEAST_SAMPLES and standard_error(samples) <= STEADY
        if steady or len(samples) >= MOST_SAMPLES:
            break
    values = np.array(samples)
    median = float(np.median(values))
    return Timing(median, float(_range(values) / median), len(samples))


def least_runs(seconds: float) -> int:
    """Runs of an operation of so many seconds that one measurement cannot do without: one to warm up, then samples."""
    return 1 + (SURE_SAMPLES if seconds <= LONG_S else 1)


def standard_error(samples: list[float]) -> float:
    """Of the median, relative to it: 0.93 interquartile ranges over the root of the count, as for normal noise."""
    values = np.array(samples)
    return float(0.93 * _range(values) / np.sqrt(len(values)) / np.median(values))


def _range(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    low, high = np.percentile(values, (25, 75))
    return float(high - low)


def _loops(once: float, timed_s: float) -> int:
    return max(1, math.ceil(timed_s / max(once, 1e-9)))


def _batch(taken: int, sample_s: float, left_s: float) -> int:
    """How many samples to take before looking again: half as many again, at least to the minimum, while time lasts."""
    wanted = max(LEAST_SAMPLES - taken, taken // 2, 1)
    return max(1, min(wanted, MOST_SAMPLES - taken, int(left_s / max(sample_s, 1e-9))))
