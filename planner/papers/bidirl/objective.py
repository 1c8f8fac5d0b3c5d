"""What a split is judged by: the slower stage, or the step period in steady state (page, (1) and (2))."""

from __future__ import annotations

import numpy as np

from planner.papers.bidirl.problem import BidirlProblem, RolloutLayout
from planner.papers.bidirl.stage_times.times import bulk_s, tail_s
from planner.papers.bidirl.stage_times.work import Floats, work_of


def slower_s(rollout_s: Floats, train_s: Floats) -> Floats:
    """B / lambda_pipe: seconds of a batch by (1)."""
    return np.maximum(rollout_s, train_s)


def period_s(problem: BidirlProblem, layout: RolloutLayout, rollout_s: Floats, train_s: Floats) -> Floats:
    """The step period by (2), without borrowing; never falls as either time grows."""
    staleness, sync_s = problem.staleness, problem.costs.weight_sync_s
    if staleness >= 1:
        return sync_s + np.maximum(rollout_s, train_s)
    if staleness == 0:
        return sync_s + (rollout_s + train_s)
    work = work_of(problem.batch, "rollout")
    after_sync_s = (1 - staleness) * bulk_s(layout.time, work, rollout_s) + tail_s(layout.time, work)
    return sync_s + np.maximum(rollout_s, train_s + after_sync_s)


def objective_s(problem: BidirlProblem, layout: RolloutLayout, rollout_s: Floats, train_s: Floats) -> Floats:
    """What the problem asks to be least, of whole batches in a rollout layout and in any train layout."""
    if problem.objective == "lambda_pipe":
        return slower_s(rollout_s, train_s)
    return period_s(problem, layout, rollout_s, train_s)
