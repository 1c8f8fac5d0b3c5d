"""All figures of one layout, exactly (page, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

from planner.papers.layout.layouts import Groups, Layout, groups
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.ranks import ranks
from planner.papers.layout.replay import pipeline_s
from planner.papers.layout.stage_times import Stages, stages
from planner.papers.layout.tail import tail_s
from planner.papers.layout.walk import RankBytes, fullest_bytes, rank_bytes


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A layout that keeps the rules, and what it comes to."""

    layout: Layout
    sizes: Groups
    stages: Stages
    pipeline_s: float
    tail_s: float
    step_time_s: float
    tokens_per_s_per_gpu: float
    peak_memory_bytes: float


def evaluate(problem: LayoutProblem, layout: Layout, pipeline: float | None = None) -> Evaluated:
    """Figures of a layout for which ``broken_rule`` finds none and whose partition is one of ``partitions``.

    ``pipeline``: the makespan, where it is known already. Memory is not asked: see ``fits``.
    """
    sizes = groups(problem, layout)
    held = stages(problem, layout, sizes)
    if pipeline is None:
        pipeline = pipeline_s(
            held.forward_s,
            held.backward_s,
            num_stages=layout.pp,
            num_micro_batches=sizes.num_micro_batches,
            chunks_per_rank=layout.vpp,
        )
    of_ranks = ranks(problem, layout, held)
    tail = tail_s(problem, layout, sizes, held, of_ranks)
    step = pipeline + tail + problem.costs.fixed_s
    return Evaluated(
        layout=layout,
        sizes=sizes,
        stages=held,
        pipeline_s=pipeline,
        tail_s=tail,
        step_time_s=step,
        tokens_per_s_per_gpu=tokens_per_s_per_gpu(problem, step),
        peak_memory_bytes=fullest_bytes(problem, layout, sizes, held, of_ranks),
    )


def bytes_by_rank(problem: LayoutProblem, found: Evaluated) -> tuple[RankBytes, ...]:
    """What every pipeline rank holds at its peak."""
    of_ranks = ranks(problem, found.layout, found.stages)
    return rank_bytes(problem, found.layout, found.sizes, found.stages, of_ranks)


def tokens_per_s_per_gpu(problem: LayoutProblem, step_time_s: float) -> float:
    """B s / (T N); zero for a step that takes no time."""
    tokens = problem.batch.global_batch_size * problem.batch.sequence_length
    return tokens / step_time_s / problem.cluster.num_gpus if step_time_s > 0 else 0.0


def fits(problem: LayoutProblem, found: Evaluated) -> bool:
    """Whether every rank has room."""
    return found.peak_memory_bytes <= problem.cluster.capacity_bytes
