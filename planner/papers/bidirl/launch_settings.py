"""A split in the settings of RL runtimes (page, section "What a runtime is told"); what one cannot say is named.

Nothing is guessed: what a plan does not say is left to whoever launches, and said so. A replica's degrees are read off
the id of its layout where that spells them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from typing import NamedTuple

from planner.papers.bidirl.degrees import degrees_of
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.solution import BidirlSolution
from planner.papers.bidirl.splits import Split

YOURS = "<yours>"
"""What the plan does not say."""


class Launched(NamedTuple):
    """Settings of one runtime, each for itself, or why it cannot be told the split."""

    runtime: str
    settings: tuple[str, ...]
    broken: str | None = None


class _UnsaidError(Exception):
    """What a runtime has no word for."""


def launched(problem: BidirlProblem, split: Split) -> list[Launched]:
    """The split as each runtime is told it."""
    found = []
    for runtime, settings in _TOLD.items():
        try:
            found.append(Launched(runtime, tuple(settings(problem, split))))
        except _UnsaidError as unsaid:
            found.append(Launched(runtime, (), str(unsaid)))
    return found


def lending_rules(problem: BidirlProblem, solution: BidirlSolution) -> list[str]:
    """What the pool that lends is told, and the costs that it assumes; nothing where nothing is known of it."""
    if solution.thresholds is None:
        return []
    switch, enabled = problem.costs.switch, problem.hot_switch
    told = [f"policy: {solution.policy}"]
    if enabled.rollout_on_train and switch.rollout_on_train is not None:
        least, costs = solution.thresholds.min_missing_groups, switch.rollout_on_train
        told.append(f"min_missing_groups: {_or_null(least)} (in_s {costs.in_s:g}, out_s {costs.out_s:g})")
    if enabled.train_on_rollout and switch.train_on_rollout is not None:
        least, merge = solution.thresholds.min_remaining_chunks, switch.train_on_rollout
        told.append(
            f"min_remaining_chunks: {_or_null(least)} (in_s {merge.in_s:g}, out_s {merge.out_s:g}, "
            f"grad_s {merge.grad_s:g})"
        )
    return told


def _or_null(least: int | None) -> str:
    return "null" if least is None else str(least)


def _verl(problem: BidirlProblem, split: Split) -> list[str]:
    (rollout_nodes, rollout_each), (train_nodes, train_each) = _by_node(problem, split)
    tensor, shard = YOURS, YOURS
    if (of_rollout := degrees_of(split.rollout)) is not None and not of_rollout.shard:
        if of_rollout.pp * of_rollout.cp > 1:
            raise _UnsaidError(f"a rollout replica is tensor ranks alone here, not {split.rollout.id}")
        tensor = str(of_rollout.tp)
    if (of_train := degrees_of(split.train)) is not None and of_train.shard:
        shard = str(of_train.shard)
    batch = problem.batch
    return [
        f"rollout.nnodes={rollout_nodes}",
        f"rollout.n_gpus_per_node={rollout_each}",
        f"trainer.nnodes={train_nodes}",
        f"trainer.n_gpus_per_node={train_each}",
        "actor_rollout_ref.hybrid_engine=False",
        f"actor_rollout_ref.rollout.tensor_model_parallel_size={tensor}",
        f"actor_rollout_ref.rollout.n={batch.responses_per_group}",
        f"actor_rollout_ref.actor.fsdp_config.fsdp_size={shard}",
        "data.train_batch_size=0",
        "data.gen_batch_size=1",
        f"async_training.staleness_threshold={problem.staleness:g}",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={YOURS}",
        f"async_training.require_batches={YOURS}",
        f"async_training.trigger_parameter_sync_step={YOURS}",
        f"the product of the last three: {batch.prompt_groups}",
    ]


def _by_node(problem: BidirlProblem, split: Split) -> tuple[tuple[int, int], tuple[int, int]]:
    """Nodes and GPUs of each of them, of the rollout and of the train pool."""
    per_node, gpus = problem.cluster.gpus_per_node, problem.cluster.gpus
    pools = ((split.rollout_gpus, split.rollout), (split.train_gpus, split.train))
    if all(pool % per_node == 0 for pool, _ in pools):
        return (split.rollout_gpus // per_node, per_node), (split.train_gpus // per_node, per_node)
    nodes, rest = divmod(gpus, per_node)
    if gpus < per_node:
        nodes, rest = 1, 0
    if rest or any(pool % nodes or pool // nodes % layout.gpus for pool, layout in pools):
        raise _UnsaidError(
            f"pools of {split.rollout_gpus} and {split.train_gpus} GPUs are neither whole nodes of {per_node} nor the "
            "same share of every node, with whole replicas"
        )
    return (nodes, split.rollout_gpus // nodes), (nodes, split.train_gpus // nodes)


def _areal(problem: BidirlProblem, split: Split) -> list[str]:
    if 0 < problem.staleness < 1:
        raise _UnsaidError(f"staleness is counted in whole versions, not {problem.staleness:g} of a batch")
    return [
        f'rollout.backend: "<engine>:{_areal_rollout(split)}"',
        f'actor.backend: "{_areal_train(split)}"',
        f"rollout.max_head_offpolicyness: {floor(problem.staleness)}",
        f"rollout.consumer_batch_size: {problem.batch.prompt_groups}",
    ]


def _areal_rollout(split: Split) -> str:
    degrees = degrees_of(split.rollout)
    if degrees is None or degrees.shard or degrees.cp > 1:
        return f"d{split.rollout_replicas}{YOURS}"
    return f"d{split.rollout_replicas}p{degrees.pp}t{degrees.tp}"


def _areal_train(split: Split) -> str:
    degrees, gpus = degrees_of(split.train), split.train_gpus
    if degrees is None:
        return YOURS
    if degrees.shard:
        return f"fsdp:d{gpus // degrees.cp}t1c{degrees.cp}"
    return f"megatron:d{split.train_replicas}p{degrees.pp}t{degrees.tp}c{degrees.cp}"


def _roll(problem: BidirlProblem, split: Split) -> list[str]:
    rollout, both = split.rollout_gpus, split.rollout_gpus + split.train_gpus
    return [
        f"actor_infer.device_mapping: list(range(0,{rollout}))",
        f"actor_infer.num_gpus_per_worker: {split.rollout.gpus}",
        f"actor_train.device_mapping: list(range({rollout},{both}))",
        f"async_generation_ratio: {problem.staleness:g}",
    ]


_TOLD: dict[str, Callable[[BidirlProblem, Split], list[str]]] = {"veRL": _verl, "AReaL": _areal, "ROLL": _roll}
