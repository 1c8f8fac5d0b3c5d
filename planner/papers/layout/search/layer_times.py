"""Seconds of one micro-batch in one layer, (1) and (2), and of a hop between stages, (3), as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.combinations import Bools, Floats, Inner
from planner.papers.layout.search.data_groups import DataGroups
from planner.papers.layout.search.rows import Priced

_TIME_STAGE = {0: 0, 1: 0, 2: 2, 3: 3}


@dataclass(frozen=True)
class LayerTimes:
    """Of each kind of layer; zero stages that change the time of a layer alike are one time stage."""

    forward_s: Floats
    """[kind, time stage, 1, combination]."""
    backward_s: Floats
    """[kind, time stage, recompute, combination]."""
    hop_s: Floats
    """[combination]."""
    stages: tuple[int, ...]
    """Of each of the zero stages of the search its place on the axis of time stages."""


def layer_times(
    problem: LayoutProblem, inner: Inner, pp: int, priced: Priced, groups: DataGroups, recomputed: Bools
) -> LayerTimes:
    """Those of combinations that keep the rules; ``recomputed`` says which kinds are run again, [kind, 1]."""
    search = problem.search
    times = sorted({_TIME_STAGE[stage] for stage in search.zero_stage})
    forward = priced.forward_s + priced.comm_forward_s
    again = {"none": np.zeros_like(forward), "selective": priced.selective_s * recomputed, "full": forward * recomputed}
    backward = priced.backward_s + priced.comm_backward_s
    backward = backward[:, None] + np.stack([again[one] for one in search.recompute], axis=1)
    shown = [_shown(problem, priced, groups, stage) for stage in times]
    return LayerTimes(
        np.stack([forward + one for one, _ in shown], axis=1)[:, :, None],
        np.stack([backward + one[:, None] for _, one in shown], axis=1),
        _hop_s(problem, inner, pp),
        tuple(times.index(_TIME_STAGE[stage]) for stage in search.zero_stage),
    )


def _shown(problem: LayoutProblem, priced: Priced, groups: DataGroups, stage: int) -> tuple[Floats, Floats]:
    """What shows of the traffic of a layer's shards, forward and backward: [kind, combination]."""
    none = np.zeros_like(priced.params)
    if stage < 2:
        return none, none
    hidden, sent = problem.costs.overlap.dp, problem.costs.comm_bytes
    scatter = groups.gather_s(priced.params, priced.expert_params, sent.grad)
    if stage == 2:
        return none, np.maximum(0.0, scatter - hidden * priced.backward_s)
    gather = groups.gather_s(priced.params, priced.expert_params, sent.param)
    return (
        np.maximum(0.0, gather - hidden * priced.forward_s),
        np.maximum(0.0, gather + scatter - hidden * priced.backward_s),
    )


def _hop_s(problem: LayoutProblem, inner: Inner, pp: int) -> Floats:
    if pp == 1:
        return np.zeros(inner.size)
    link = problem.costs.p2p.link(crosses=problem.cluster.num_gpus > problem.cluster.gpus_per_node)
    shared = inner.cp * np.where(inner.sequence_parallel, inner.tp, 1)
    message = problem.costs.boundary_bytes_per_sample * inner.micro_batch / shared
    return np.asarray((1 - problem.costs.overlap.p2p) * (link.alpha_s + link.beta_s_per_byte * message))
