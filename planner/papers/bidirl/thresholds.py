"""From what backlog on a pool is worth lending (page, section 3.4): exported integers, and real ones behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.papers.bidirl.problem import AnyTime, BidirlProblem, Linear
from planner.papers.bidirl.solution import Thresholds
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.stage_times.times import taken_s
from planner.papers.bidirl.stage_times.work import Floats, work_of

ROUNDED = 1e-12
"""Relative: a gain that exceeds its cost by less is rounding, and none."""
FLOOR = 1e-9
"""Chunks that rounding may take from a whole number of finished ones."""


@dataclass(frozen=True)
class Backlog:
    """The real-valued backlog from which lending pays, for linear costs; None where it never does, or none are."""

    missing_groups: float | None
    remaining_chunks: float | None


def thresholds(problem: BidirlProblem, split: Split) -> Thresholds:
    """The least backlog from which the rule of each direction holds for every larger one; null if for none."""
    return Thresholds(
        min_missing_groups=_from_which(rollout_pays(problem, split)),
        min_remaining_chunks=_from_which(train_pays(problem, split)),
    )


def rollout_pays(problem: BidirlProblem, split: Split) -> npt.NDArray[np.bool_]:
    """Whether (5) holds of Q missing groups, by Q from 0 to B; of none where pool T is never lent."""
    groups = np.arange(problem.batch.prompt_groups + 1)
    costs = problem.costs.switch.rollout_on_train
    own, helpers = split.rollout_replicas, split.rollout_helpers
    if costs is None or helpers == 0 or not problem.hot_switch.rollout_on_train:
        return np.zeros(len(groups), dtype=np.bool_)
    work = work_of(problem.batch, "rollout")
    alone_s = taken_s(split.rollout.time, work, groups, own)
    with_help_s = taken_s(split.rollout.time, work, groups, own + helpers)
    return _above(alone_s, with_help_s + (costs.in_s + costs.out_s))


def train_pays(problem: BidirlProblem, split: Split) -> npt.NDArray[np.bool_]:
    """Whether (6) holds of U remaining chunks, by U from 0 to N_u; of none where pool R is never lent."""
    chunks = np.arange(problem.batch.train_chunks + 1)
    costs = problem.costs.switch.train_on_rollout
    own, helpers = split.train_replicas, split.train_helpers
    if costs is None or helpers == 0 or not problem.hot_switch.train_on_rollout:
        return np.zeros(len(chunks), dtype=np.bool_)
    work = work_of(problem.batch, "train")
    alone_s = taken_s(split.train.time, work, chunks, own)
    left = chunks - finished_chunks(costs.in_s, problem.batch.train_chunks, float(alone_s[-1] - alone_s[0]))
    with_help_s = taken_s(split.train.time, work, np.maximum(left, 0), own + helpers)
    return (left > 0) & _above(alone_s, costs.in_s + with_help_s + (costs.out_s + costs.grad_s))


def finished_chunks(in_s: float, chunks: int, divisible_s: float) -> int:
    """Chunks that pool T finishes by itself while helpers are switched in; all where chunks take no time."""
    return min(chunks, math.floor(in_s * chunks / divisible_s + FLOOR)) if divisible_s > 0 else chunks


def backlogs(problem: BidirlProblem, split: Split) -> Backlog:
    """Q* and u* of linear times (page, section 3.4): chunks are finished by fractions, and nothing is rounded."""
    switch, enabled = problem.costs.switch, problem.hot_switch
    groups = chunks = None
    if enabled.rollout_on_train and (lend := switch.rollout_on_train) is not None:
        saved_s = _saved_s(split.rollout.time, split.rollout_replicas, split.rollout_helpers)
        if saved_s:
            groups = problem.batch.prompt_groups * (lend.in_s + lend.out_s) / saved_s
    if enabled.train_on_rollout and (to_train := switch.train_on_rollout) is not None:
        own, helpers = split.train_replicas, split.train_helpers
        saved_s = _saved_s(split.train.time, own, helpers)
        if saved_s:
            paid_s = to_train.in_s * helpers / (own + helpers) + to_train.out_s + to_train.grad_s
            chunks = problem.batch.train_chunks * paid_s / saved_s
    return Backlog(groups, chunks)


def _saved_s(time: AnyTime, own: int, helpers: int) -> float:
    """Of a whole batch, what helpers save of a linear time from its start; 0 of any other kind."""
    return time.beta_s * helpers / (own * (own + helpers)) if isinstance(time, Linear) else 0.0


def _above(one_s: Floats, other_s: Floats) -> npt.NDArray[np.bool_]:
    return one_s > other_s * (1 + ROUNDED)


def _from_which(holds: npt.NDArray[np.bool_]) -> int | None:
    """The least number from which on all hold; None where the last does not."""
    fails = np.flatnonzero(~holds)
    first = int(fails[-1]) + 1 if len(fails) else 0
    return first if first < len(holds) else None
