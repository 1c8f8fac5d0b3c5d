"""A placement in the settings of launchers (page, section 7); what one cannot say is named.

DeepSpeed: ``zero_optimization`` of its JSON. Megatron-LM: command line. torchtitan: ``parallelism`` of its TOML.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from planner.papers.memory.explained import Placement
from planner.papers.memory.names import named
from planner.papers.memory.problem import MemoryProblem


class Launched(NamedTuple):
    """Settings of one launcher, or what it cannot say of the placement."""

    launcher: str
    settings: str
    cannot: str = ""


def launched(problem: MemoryProblem, placement: Placement) -> list[Launched]:
    """The placement as each launcher is told it. Degrees are those of the first group."""
    return [_deepspeed(problem, placement), _megatron(problem, placement), _torchtitan(problem, placement)]


def _stage(problem: MemoryProblem, placement: Placement) -> int | None:
    """The ZeRO stage whose sharding over all dimensions the placement has."""
    n = problem.num_dims
    stages = [(0, 0, 0), (0, 0, n), (0, n, n), (n, n, n)]
    prefixes = (placement.i_p, placement.i_g, placement.i_o)
    return stages.index(prefixes) if prefixes in stages else None


def _cannot(launcher: str, problem: MemoryProblem, placement: Placement) -> Launched:
    return Launched(launcher, "", f"has no setting for: {named(placement, problem.num_dims)}")


def _deepspeed(problem: MemoryProblem, placement: Placement) -> Launched:
    launcher, stage = "DeepSpeed", _stage(problem, placement)
    if stage is None or placement.parameters == "gather_keep" or placement.activations == "offloaded":
        return _cannot(launcher, problem, placement)
    # Where sharded gradients lie goes with the optimizer that reads them; parameters leave the device at stage 3 alone.
    away = placement.optimizer == "offloaded"
    least = ((placement.optimizer, 1), (placement.gradients, 2), (placement.parameters, 3))
    if any(mode == "offloaded" and stage < first for mode, first in least):
        return _cannot(launcher, problem, placement)
    settings = [f'"stage": {stage}']
    settings += ['"offload_optimizer": {"device": "cpu"}'] if away else []
    settings += ['"offload_param": {"device": "cpu"}'] if placement.parameters == "offloaded" else []
    return Launched(launcher, f'"zero_optimization": {{{", ".join(settings)}}}{_recomputed(placement)}')


def _megatron(problem: MemoryProblem, placement: Placement) -> Launched:
    launcher, stage = "Megatron-LM", _stage(problem, placement)
    states = (placement.parameters, placement.gradients, placement.optimizer, placement.activations)
    if stage not in (0, 1) or "offloaded" in states:
        return _cannot(launcher, problem, placement)
    flags = ["--use-distributed-optimizer"] if stage == 1 else []
    if placement.activations == "materialised":
        flags += ["--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"]
    return Launched(launcher, " ".join(flags) or "no flag")


def _torchtitan(problem: MemoryProblem, placement: Placement) -> Launched:
    launcher, i_p = "torchtitan", placement.i_p
    states = (placement.parameters, placement.gradients, placement.optimizer, placement.activations)
    if not 0 < i_p == placement.i_g == placement.i_o or "offloaded" in states:
        return _cannot(launcher, problem, placement)
    sizes = [dim.size for dim in problem.groups[0].dims]
    # Context-parallel ranks are innermost among those that share a parameter; its mesh has them beside the degree.
    context = problem.job.layout.cp if problem.job else 1
    shard, beside = divmod(math.prod(sizes[:i_p]), context)
    if beside:
        return Launched(launcher, "", f"shards over whole groups of the {context} context-parallel ranks alone")
    reshard = "never" if placement.parameters == "gather_keep" else "always"
    settings = f"data_parallel_shard_degree={shard}, data_parallel_replicate_degree={math.prod(sizes[i_p:])}"
    unknown = "" if problem.job else "; the shard degree divided by that of context parallelism, which is not stated"
    return Launched(launcher, f"{settings}, fsdp_reshard_after_forward={reshard}{_recomputed(placement)}{unknown}")


def _recomputed(placement: Placement) -> str:
    return "; activation checkpointing of every layer" if placement.activations == "materialised" else ""
