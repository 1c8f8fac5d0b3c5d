"""Which splits of the GPUs into two pools are allowed (page, (3) and (4)), as steps in which the pools grow."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from planner.papers.bidirl.problem import BidirlProblem, RolloutLayout, TrainLayout


@dataclass(frozen=True)
class Split:
    """Pool R is GPUs 0 to rollout_gpus - 1, pool T the train_gpus after them."""

    rollout_gpus: int
    train_gpus: int
    rollout: RolloutLayout
    train: TrainLayout

    @property
    def rollout_replicas(self) -> int:
        """d_r."""
        return self.rollout_gpus // self.rollout.gpus

    @property
    def train_replicas(self) -> int:
        """d_t."""
        return self.train_gpus // self.train.gpus

    @property
    def rollout_helpers(self) -> int:
        """Replicas of rollout that pool T holds when lent."""
        return self.train_gpus // self.rollout.gpus

    @property
    def train_helpers(self) -> int:
        """Replicas of training that pool R holds when lent."""
        return self.rollout_gpus // self.train.gpus


@dataclass(frozen=True)
class Steps:
    """Of two layouts: rollout_gpus is a multiple of ``rollout``, and train_gpus of ``train``."""

    rollout: int
    train: int


def steps_of(problem: BidirlProblem, rollout: int, train: int) -> Steps | None:
    """The steps of two replica sizes; None where one of them tiles no node.

    Replicas lie one after the other from the first GPU of a pool, so none straddles a node where its size divides the
    node's, or the node's divides it, and its pool begins at a multiple of the smaller of the two. Pool R begins at 0,
    pool T at rollout_gpus; lent replicas of rollout begin there too, at a multiple of their own size.
    """
    per_node = problem.cluster.gpus_per_node
    if not (tiles(rollout, per_node) and tiles(train, per_node)):
        return None
    switch = problem.hot_switch
    of_rollout = lcm(rollout, problem.split_granularity_gpus, min(train, per_node))
    return Steps(
        lcm(of_rollout, train) if switch.train_on_rollout else of_rollout,
        lcm(train, rollout) if switch.rollout_on_train else train,
    )


def tiles(replica: int, per_node: int) -> bool:
    """Whether replicas of a size fill nodes without straddling."""
    return per_node % replica == 0 if replica <= per_node else replica % per_node == 0
