"""The exported thresholds (page, section 3.4), found by trying every backlog from the whole batch down."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from planner.findings import Findings
from planner.papers.bidirl.checks.decided import Pools
from planner.papers.bidirl.checks.stage_time import Floats, seconds
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.solution import Thresholds

FLOOR = 1e-9
"""Of a chunk: what rounding may take from a whole number of finished ones (page)."""
NOISE, SURE = 1e-14, 1e-10
"""Relative: a gain below the first is none, one above the second is real; between them either answer will do."""

Range = tuple[int | None, int | None]


def check_thresholds(problem: BidirlProblem, pools: Pools, stated: Thresholds, found: Findings) -> None:
    """That both are the least backlog from which the rule holds of every larger one."""
    for name, value, (low, high) in (
        ("min_missing_groups", stated.min_missing_groups, missing_groups(problem, pools)),
        ("min_remaining_chunks", stated.min_remaining_chunks, remaining_chunks(problem, pools)),
    ):
        between = low is not None and value is not None and low <= value and (high is None or value <= high)
        if not between and value != high:
            found.add("threshold", f"stated {_said(value)}, expected {_said(high)}", f"thresholds.{name}")


def missing_groups(problem: BidirlProblem, pools: Pools) -> Range:
    """The least Q of which, and of all above, (5) may hold, and that of which it surely does; None for none."""
    costs, helpers = problem.costs.switch.rollout_on_train, pools.train_gpus // pools.rollout.gpus
    if not problem.hot_switch.rollout_on_train or costs is None or not helpers:
        return None, None
    own, q = pools.rollout_replicas, np.arange(1, problem.batch.prompt_groups + 1)
    time = pools.rollout.time
    alone_s = seconds(time, problem.batch, q, np.array(own), trains=False)
    together_s = seconds(time, problem.batch, q, np.array(own + helpers), trains=False)
    return _range(alone_s - together_s - costs.in_s - costs.out_s, alone_s, q > 0)


def remaining_chunks(problem: BidirlProblem, pools: Pools) -> Range:
    """The same of U and (6)."""
    costs, helpers = problem.costs.switch.train_on_rollout, pools.rollout_gpus // pools.train.gpus
    if not problem.hot_switch.train_on_rollout or costs is None or not helpers:
        return None, None
    own, u = pools.train_replicas, np.arange(problem.batch.train_chunks + 1)
    alone_s = seconds(pools.train.time, problem.batch, u, np.array(own), trains=True)
    divisible_s = float(alone_s[-1] - alone_s[0])
    if divisible_s <= 0:
        return None, None
    left = u - min(int(u[-1]), math.floor(costs.in_s * int(u[-1]) / divisible_s + FLOOR))
    together_s = seconds(pools.train.time, problem.batch, np.maximum(left, 0), np.array(own + helpers), trains=True)
    gain_s = alone_s - (costs.in_s + together_s + costs.out_s + costs.grad_s)
    return _range(gain_s[1:], alone_s[1:], left[1:] > 0)


def _range(gain_s: Floats, scale_s: Floats, allowed: npt.NDArray[np.bool_]) -> Range:
    """By backlogs from 1 on."""
    return (
        _from_which(allowed & (gain_s > NOISE * scale_s)),
        _from_which(allowed & (gain_s > SURE * scale_s)),
    )


def _from_which(holds: npt.NDArray[np.bool_]) -> int | None:
    """The least backlog from which the rule holds up to the whole batch; None where it does not hold of that."""
    without_end = np.cumprod(holds[::-1])
    count = int(without_end.sum())
    return len(holds) - count + 1 if count else None


def _said(value: int | None) -> str:
    return "none" if value is None else str(value)
