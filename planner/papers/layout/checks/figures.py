"""What layouts come to: every figure of the page's sections 3.4 to 3.6, a second time and for many layouts at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from planner.papers.layout.checks.decision import EXACT, TOLERANCE, Decision
from planner.papers.layout.checks.graph import Shape
from planner.papers.layout.checks.repeated import Pipeline, pipeline_of
from planner.papers.layout.checks.stages import Floats, Groups, Stages, groups_of, on_ranks, rows_of, stages_of
from planner.papers.layout.problem import LayoutProblem

METRICS = (
    "dp",
    "num_micro_batches",
    "pipeline_s",
    "tail_s",
    "step_time_s",
    "tokens_per_s_per_gpu",
    "peak_memory_bytes",
)
"""What a row states beside its decision."""


@dataclass(frozen=True)
class Recomputed:
    """The metrics of one layout, named as in a row."""

    dp: int
    num_micro_batches: int
    pipeline_s: float
    tail_s: float
    step_time_s: float
    tokens_per_s_per_gpu: float
    peak_memory_bytes: float


def figures(problem: LayoutProblem, decisions: Iterable[Decision]) -> dict[Decision, Recomputed]:
    """Of layouts that break no rule; those that the table does not price are left out."""
    by_shape: dict[Shape, dict[Decision, Stages]] = {}
    for of in dict.fromkeys(decisions):
        rows = rows_of(problem, of)
        if not isinstance(rows, str):
            by_shape.setdefault(shape_of(problem, of), {})[of] = stages_of(problem, of, rows)
    found: dict[Decision, Recomputed] = {}
    for shape, alike in by_shape.items():
        graph = pipeline_of(shape)
        # What differs in neither direction has one longest path.
        timed = {of: (tuple(each.forward_s.tolist()), tuple(each.backward_s.tolist())) for of, each in alike.items()}
        once = list(dict.fromkeys(timed.values()))
        columns = (np.array([one[way] for one in once]).T for way in (0, 1))
        pipeline_s = dict(zip(once, graph.longest_paths(*columns), strict=True))
        for of, stages in alike.items():
            found[of] = _recomputed(problem, of, stages, graph, pipeline_s[timed[of]])
    return found


def _recomputed(problem: LayoutProblem, of: Decision, stages: Stages, graph: Pipeline, pipeline_s: float) -> Recomputed:
    cluster, batch = problem.cluster, problem.batch
    tail_s = _tail_s(problem, of, stages)
    step_s = pipeline_s + tail_s + problem.costs.fixed_s
    tokens = batch.global_batch_size * batch.sequence_length
    return Recomputed(
        dp=cluster.num_gpus // (of.tp * of.cp * of.pp),
        num_micro_batches=graph.shape.num_micro_batches,
        pipeline_s=pipeline_s,
        tail_s=tail_s,
        step_time_s=step_s,
        tokens_per_s_per_gpu=tokens / (step_s * cluster.num_gpus) if step_s > 0 else 0.0,
        peak_memory_bytes=_peak_memory_bytes(problem, of, stages, graph),
    )


def shape_of(problem: LayoutProblem, of: Decision) -> Shape:
    """Of its pipeline."""
    dp = problem.cluster.num_gpus // (of.tp * of.cp * of.pp)
    return Shape(of.pp, of.vpp, problem.batch.global_batch_size // (of.micro_batch * dp))


def fits(problem: LayoutProblem, peak_bytes: float) -> bool | None:
    """Whether the fullest rank has room beside the reserve; None where rounding decides."""
    room_bytes = problem.cluster.gpu_memory_bytes - problem.cluster.reserve_bytes
    if peak_bytes <= room_bytes * (1 - EXACT):
        return True
    return False if peak_bytes > room_bytes * (1 + TOLERANCE) else None


def _peak_memory_bytes(problem: LayoutProblem, of: Decision, stages: Stages, graph: Pipeline) -> float:
    """Of the fullest rank, by a walk over the order of every one (page, section 3.6)."""
    costs, groups = problem.costs, groups_of(problem, of)
    width, held = costs.bytes_per_param, stages.held(of.pp)
    params, experts = _per_rank(stages, of, stages.params), _per_rank(stages, of, stages.expert_params)
    whole, shard = params + experts, params / groups.dense + experts / groups.experts
    unit = _largest(held, stages.params) + _largest(held, stages.expert_params)
    weights = width.param * (shard + 2 * unit if of.zero_stage == 3 else whole)
    gradients = width.grad * (shard + unit if of.zero_stage >= 2 else whole)
    optimizer = width.optimizer * (shard if of.zero_stage >= 1 else whole)
    live = graph.peaks(stages.stored_bytes) + _largest(held, stages.transient_bytes)
    rings = (of.tp, of.cp, of.pp, groups.dense, of.ep, of.etp)
    communicators = costs.communicator_bytes * sum(ranks > 1 for ranks in rings)
    return float((weights + gradients + optimizer + live * (1 + costs.fragmentation)).max() + communicators)


def _per_rank(stages: Stages, of: Decision, per_unit: Floats) -> Floats:
    return on_ranks(stages.counts @ per_unit, of.pp)


def _largest(held: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], per_unit: Floats) -> Floats:
    """Over the units of each rank, (p,)."""
    return np.asarray(np.where(held, per_unit, 0.0).max(axis=1))


def _tail_s(problem: LayoutProblem, of: Decision, stages: Stages) -> float:
    """Equation 4 on the slowest rank."""
    costs, groups, z = problem.costs, groups_of(problem, of), of.zero_stage
    params, experts = _per_rank(stages, of, stages.params), _per_rank(stages, of, stages.expert_params)
    reduce_s = {0: 2.0, 1: 1.0}.get(z, 0.0) * _ring_s(problem, groups, params, experts, costs.comm_bytes.grad)
    gather_s = {1: 1.0, 2: 1.0}.get(z, 0.0) * _ring_s(problem, groups, params, experts, costs.comm_bytes.param)
    updated = params + experts if z == 0 else params / groups.dense + experts / groups.experts
    omega = costs.overlap.dp
    behind_backward = omega * on_ranks(stages.backward_s, of.pp)
    behind_forward = omega * on_ranks(stages.forward_s, of.pp)
    shown = np.maximum(0.0, reduce_s - behind_backward) + np.maximum(0.0, gather_s - behind_forward)
    return float((shown + costs.optimizer_s_per_param * updated).max())


def _ring_s(problem: LayoutProblem, groups: Groups, params: Floats, experts: Floats, width: float) -> Floats:
    return groups.seconds(problem.costs.collectives, params * width, experts * width)
