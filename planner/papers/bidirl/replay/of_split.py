"""The setting of a replay from a problem and a split."""

from __future__ import annotations

from planner.papers.bidirl.drawing import workload
from planner.papers.bidirl.problem import (
    AnyTime,
    BidirlProblem,
    LendRollout,
    LendTrain,
    Linear,
    RolloutLayout,
    TrainLayout,
)
from planner.papers.bidirl.replay.setting import Setting, Stage, Switch
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.stage_times.times import batch_s
from planner.papers.bidirl.stage_times.work import Work, work_of


def setting_of(problem: BidirlProblem, split: Split) -> Setting:
    """The run that the problem describes, on one split whose stage times are known."""
    switch, gpus = problem.costs.switch, problem.cluster.gpus
    of_rollout, of_train = work_of(problem.batch, "rollout"), work_of(problem.batch, "train")
    rollout = _stage(
        split.rollout.time,
        of_rollout,
        split.rollout_replicas,
        split.rollout_helpers if problem.hot_switch.rollout_on_train else 0,
    )
    train = _stage(
        split.train.time,
        of_train,
        split.train_replicas,
        split.train_helpers if problem.hot_switch.train_on_rollout else 0,
    )
    work_factor, max_response_tokens = workload(problem.simulation, problem.batch)
    return Setting(
        rollout=rollout,
        train=train,
        rollout_on_train=_switch(switch.rollout_on_train),
        train_on_rollout=_switch(switch.train_on_rollout),
        colocated_rollout=_on_all(split.rollout, of_rollout, rollout, gpus),
        colocated_train=_on_all(split.train, of_train, train, gpus),
        colocated_switch_s=problem.costs.colocated_switch_s,
        weight_sync_s=problem.costs.weight_sync_s,
        staleness=problem.staleness,
        steps=problem.simulation.steps,
        work_factor=tuple(work_factor.tolist()),
        max_response_tokens=tuple(max_response_tokens.tolist()),
    )


def _stage(time: AnyTime, work: Work, replicas: int, helpers: int) -> Stage:
    """A kind that does not say what its replicas share is all shared, at the replicas that it is planned for."""
    if isinstance(time, Linear):
        return Stage(replicas, time.alpha_s, time.beta_s, time.gamma_s_per_token, helpers)
    return Stage(replicas, 0.0, float(batch_s(time, work, replicas)) * replicas, helpers=helpers)


def _on_all(layout: RolloutLayout | TrainLayout, work: Work, planned: Stage, gpus: int) -> Stage:
    """The role on all GPUs; where no time is known there, by the replicas that it is planned for."""
    replicas = gpus // layout.gpus
    if batch_s(layout.time, work, replicas) < float("inf"):
        return _stage(layout.time, work, replicas, 0)
    return Stage(replicas, planned.fixed_s, planned.bulk_replica_s, planned.tail_s_per_token)


def _switch(costs: LendTrain | None) -> Switch:
    """Free where it is not stated: then the direction is off."""
    if costs is None:
        return Switch()
    return Switch(costs.in_s, costs.out_s, costs.grad_s if isinstance(costs, LendRollout) else 0.0)
