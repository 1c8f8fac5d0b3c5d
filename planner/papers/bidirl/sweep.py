"""Splits that are picked by something else than being best: the even one, and the worst (page, sections 3.5 and 5)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.search import Space, best_of, objectives_s
from planner.papers.bidirl.splits import Split


def even_split(problem: BidirlProblem, space: Space) -> Split | None:
    """The best split of those whose rollout pool is nearest to half of the GPUs, the smaller on ties.

    None where no split is allowed and timed.
    """
    gpus = np.arange(problem.cluster.gpus + 1)
    allowed = np.zeros(len(gpus), dtype=np.bool_)
    for rollout in range(len(space.rollout)):
        allowed |= (objectives_s(problem, space, rollout) < np.inf).any(axis=0)
    if not allowed.any():
        return None
    distance = np.where(allowed, np.abs(2 * gpus - problem.cluster.gpus), np.iinfo(np.int64).max)
    return best_at(problem, space, int(distance.argmin()))


def worst_split(problem: BidirlProblem, space: Space) -> Split | None:
    """The allowed split of the greatest objective, the first of equal ones by layouts and rollout_gpus.

    None where no split is allowed and timed. Where GPUs may stay idle, it is only the rollout pool and the layouts that
    are as bad as they get.
    """
    worst_s, found = -np.inf, None
    for rollout in range(len(space.rollout) if space.train else 0):
        judged_s = objectives_s(problem, space, rollout)
        judged_s[judged_s == np.inf] = -np.inf
        train, rollout_gpus = divmod(int(judged_s.argmax()), judged_s.shape[1])
        if judged_s[train, rollout_gpus] > worst_s:
            worst_s, found = float(judged_s[train, rollout_gpus]), (rollout, train, rollout_gpus)
    if found is None:
        return None
    rollout, train, rollout_gpus = found
    pair = Space(
        space.rollout[rollout : rollout + 1],
        space.train[train : train + 1],
        space.rollout_s[rollout : rollout + 1],
        space.train_s[train : train + 1],
    )
    return best_at(problem, pair, rollout_gpus)


def best_at(problem: BidirlProblem, space: Space, rollout_gpus: int) -> Split | None:
    """The best split of one rollout pool; None where none of it is allowed and timed."""
    return best_of(problem, _only(space, rollout_gpus))


def _only(space: Space, rollout_gpus: int) -> Space:
    """The space of one rollout pool."""
    times_s = np.full_like(space.rollout_s, np.inf)
    times_s[:, rollout_gpus] = space.rollout_s[:, rollout_gpus]
    return replace(space, rollout_s=times_s)
