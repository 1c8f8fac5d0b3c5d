"""What excludes the splits of a problem without an allowed one: rules (3) and (4), or tables without their replicas."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from planner.papers.bidirl.layouts import usable
from planner.papers.bidirl.problem import BidirlProblem, RolloutLayout, Table, TrainLayout
from planner.papers.bidirl.splits import Steps, steps_of, tiles
from planner.papers.bidirl.stage_times.work import Ints

RULES = ("pool_not_divisible", "hot_switch_incompatible", "replica_straddles_node", "split_granularity")
"""In the order of ties."""

Truths = npt.NDArray[np.bool_]


def pairs(problem: BidirlProblem) -> Iterator[tuple[RolloutLayout, TrainLayout]]:
    """Usable layouts of both roles, each with each."""
    train = usable(problem, problem.costs.train_layouts)
    for rollout in usable(problem, problem.costs.rollout_layouts):
        for layout in train:
            yield rollout, layout


def excluded(problem: BidirlProblem) -> dict[str, int]:
    """How many splits of all GPUs break each rule, over all pairs of usable layouts."""
    counts = dict.fromkeys(RULES, 0)
    for rollout, train in pairs(problem):
        for rule, broken in zip(RULES, _broken(problem, rollout.gpus, train.gpus), strict=True):
            counts[rule] += int(broken.sum())
    return counts


def finest_steps(problem: BidirlProblem) -> Steps | None:
    """Of all pairs of usable layouts, the steps of the pools that sum to least; None where none tiles the nodes."""
    found = [steps_of(problem, rollout.gpus, train.gpus) for rollout, train in pairs(problem)]
    return min(
        (steps for steps in found if steps is not None),
        key=lambda steps: (steps.rollout + steps.train, steps.rollout),
        default=None,
    )


def unlisted_replicas(problem: BidirlProblem) -> dict[str, list[int]]:
    """Replicas of which a table would have to give the time for some split to be a candidate, by layout in words.

    Empty where no split is allowed.
    """
    lacking: dict[str, set[int]] = {}
    for rollout, train in pairs(problem):
        rollout_gpus, train_gpus = _allowed(problem, rollout.gpus, train.gpus)
        for role, layout, pool in (("rollout", rollout, rollout_gpus), ("train", train, train_gpus)):
            if isinstance(layout.time, Table):
                replicas = set(np.unique(pool // layout.gpus).tolist()) - set(layout.time.replicas)
                lacking.setdefault(f"{role} layout {layout.id}", set()).update(replicas)
    return {name: sorted(replicas) for name, replicas in lacking.items() if replicas}


def _broken(problem: BidirlProblem, rollout: int, train: int) -> tuple[Truths, ...]:
    """By rule and rollout_gpus, from 1 on, whether a split of all GPUs breaks it."""
    rollout_gpus = np.arange(1, problem.cluster.gpus)
    train_gpus = problem.cluster.gpus - rollout_gpus
    per_node, switch = problem.cluster.gpus_per_node, problem.hot_switch
    lent = np.zeros(len(rollout_gpus), dtype=np.bool_)
    if switch.rollout_on_train:
        lent |= train_gpus % rollout != 0
    if switch.train_on_rollout:
        lent |= rollout_gpus % train != 0
    tiled = tiles(rollout, per_node) and tiles(train, per_node)
    return (
        (rollout_gpus % rollout != 0) | (train_gpus % train != 0),
        lent,
        (rollout_gpus % min(train, per_node) != 0) | (not tiled),
        rollout_gpus % problem.split_granularity_gpus != 0,
    )


def _allowed(problem: BidirlProblem, rollout: int, train: int) -> tuple[Ints, Ints]:
    """Pools of each role in splits that the rules allow."""
    gpus, steps = problem.cluster.gpus, steps_of(problem, rollout, train)
    if steps is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if problem.allow_idle_gpus:
        return (
            np.arange(steps.rollout, gpus - steps.train + 1, steps.rollout),
            np.arange(steps.train, gpus - steps.rollout + 1, steps.train),
        )
    rollout_gpus = np.arange(steps.rollout, gpus, steps.rollout)
    rollout_gpus = rollout_gpus[(gpus - rollout_gpus) % steps.train == 0]
    return rollout_gpus, gpus - rollout_gpus
