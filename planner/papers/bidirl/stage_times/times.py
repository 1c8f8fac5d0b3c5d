"""The stage time of any kind."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from planner.papers.bidirl.problem import AnyTime, Lengths, Linear, Table
from planner.papers.bidirl.stage_times import lengths, linear, stages, table
from planner.papers.bidirl.stage_times.work import Floats, Work

Counts = npt.ArrayLike
"""Whole numbers, one or many."""


def taken_s(time: AnyTime, work: Work, parts: Counts, replicas: Counts) -> Floats:
    """M(parts, d): seconds of so many parts of a batch on d >= 1 replicas, broadcast.

    Infinite where a table does not list d.
    """
    of, on = np.asarray(parts, dtype=np.int64), np.asarray(replicas, dtype=np.int64)
    if isinstance(time, Linear):
        return linear.taken_s(time, work, of, on)
    if isinstance(time, Table):
        return table.taken_s(time, work, of, on)
    if isinstance(time, Lengths):
        return lengths.taken_s(time, work, of, on)
    return stages.taken_s(time, work, of, on)


def batch_s(time: AnyTime, work: Work, replicas: Counts) -> Floats:
    """M(d): seconds of a whole batch on d >= 1 replicas; infinite where a table does not list d."""
    return taken_s(time, work, work.whole, replicas)


def relaxed_s(time: AnyTime, work: Work, replicas: Floats) -> Floats:
    """Seconds of a whole batch on a real number of replicas above 0.

    Falls or stays as it grows, and is no more than ``batch_s`` where it is whole.
    """
    if isinstance(time, Linear):
        return linear.relaxed_s(time, work, replicas)
    if isinstance(time, Table):
        return table.relaxed_s(time, replicas)
    if isinstance(time, Lengths):
        return lengths.relaxed_s(time, work, replicas)
    return stages.relaxed_s(time, replicas)


def tail_s(time: AnyTime, work: Work) -> float:
    """Of a whole batch, what neither replicas nor a share of the batch shorten: gamma L, where there is a gamma."""
    return linear.tail_s(time, work) if isinstance(time, Linear) else 0.0


def bulk_s(time: AnyTime, work: Work, batch_time_s: Floats) -> Floats:
    """Of the time of a whole batch, what its replicas share: beta / d, or all of it where the kind does not say."""
    if isinstance(time, Linear):
        return np.maximum(batch_time_s - linear.fixed_s(time) - linear.tail_s(time, work), 0.0)
    return batch_time_s
