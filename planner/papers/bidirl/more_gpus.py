"""The next larger number of GPUs that splits into two allowed pools."""

from __future__ import annotations

import numpy as np

from planner.papers.bidirl.problem import MAX_GPUS, BidirlProblem
from planner.papers.bidirl.search import space_of, train_times


def next_gpus(problem: BidirlProblem) -> int | None:
    """The least number above the problem's, up to twice as many, that an allowed and timed split uses whole."""
    now = problem.cluster.gpus
    most = min(2 * now, MAX_GPUS)
    cluster = problem.cluster.model_copy(update={"gpus": most})
    larger = problem.model_copy(update={"cluster": cluster, "allow_idle_gpus": False})
    space = space_of(larger)
    pools = np.arange(most + 1)
    least = most + 1
    for rollout in range(len(space.rollout)):
        train_s, steps = train_times(larger, space, rollout)
        # The least train pool that is allowed, of so many GPUs or more; beyond the most where none is.
        of_train = np.where(np.isfinite(train_s), pools, most + 1)
        of_train = np.minimum.accumulate(of_train[:, ::-1], axis=1)[:, ::-1]
        wanted = np.maximum(now + 1 - pools, 1)
        timed = np.isfinite(space.rollout_s[rollout]) & (steps[:, None] > 0)
        allowed = timed & (pools % np.maximum(steps, 1)[:, None] == 0)
        total = np.where(allowed, pools + of_train[:, wanted], most + 1)
        least = min(least, int(total.min(initial=most + 1)))
    return least if least <= most else None
