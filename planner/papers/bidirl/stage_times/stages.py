"""A train step stage by stage, each with a fixed part and chunks that replicas share."""

from __future__ import annotations

import numpy as np

from planner.papers.bidirl.problem import Stages
from planner.papers.bidirl.stage_times.work import Floats, Ints, Work


def taken_s(time: Stages, work: Work, parts: Ints, replicas: Ints) -> Floats:
    """Seconds of so many chunks of the batch on so many replicas, broadcast; of none, what is fixed."""
    total: Floats = np.zeros(np.broadcast_shapes(np.shape(parts), np.shape(replicas)))
    for stage in time.stages:
        on_fullest = -(-(stage.chunks * parts) // (work.whole * replicas))
        total = total + (stage.fixed_s + on_fullest * stage.chunk_s)
    return total


def relaxed_s(time: Stages, replicas: Floats) -> Floats:
    """Seconds of a whole batch on a real number of replicas, its chunks divided without rest."""
    total: Floats = np.zeros(np.shape(replicas))
    for stage in time.stages:
        total = total + (stage.fixed_s + stage.chunks / replicas * stage.chunk_s)
    return total
