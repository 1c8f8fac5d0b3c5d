"""Measured times by count of replicas; parts in proportion."""

from __future__ import annotations

import numpy as np

from planner.papers.bidirl.problem import Table
from planner.papers.bidirl.stage_times.work import Floats, Ints, Work

ROUNDED = 1 + 1e-12
"""What rounding may take from a whole number of replicas."""


def taken_s(time: Table, work: Work, parts: Ints, replicas: Ints) -> Floats:
    """Seconds of so many parts on so many replicas, broadcast; infinite where their count is not listed."""
    listed, times = np.array(time.replicas), np.array(time.time_s)
    place = np.minimum(np.searchsorted(listed, replicas), len(listed) - 1)
    whole_s = np.where(listed[place] == replicas, times[place], np.inf)
    return np.where(parts == 0, 0.0, whole_s * (np.maximum(parts, 1) / work.whole))


def relaxed_s(time: Table, replicas: Floats) -> Floats:
    """The least time of any listed count up to a real one: no count listed takes less; infinite below the first."""
    least = np.concatenate(([np.inf], np.minimum.accumulate(np.array(time.time_s))))
    return least[np.searchsorted(np.array(time.replicas), replicas * ROUNDED, side="right")]
