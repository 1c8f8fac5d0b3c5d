"""The tail of a step on every rank: what of the reduction and the gather shows, and the update (page, equation 4)."""

from __future__ import annotations

from collections.abc import Sequence

from planner.papers.layout.layouts import Groups, Layout
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.ranks import Rank
from planner.papers.layout.stage_times import Stages, sharing_s


def tail_s(problem: LayoutProblem, layout: Layout, sizes: Groups, held: Stages, ranks: Sequence[Rank]) -> float:
    """Seconds after the pipeline, on the slowest rank; a collective hides behind the rank's share of a micro-batch."""
    costs, z, overlap = problem.costs, layout.zero_stage, problem.costs.overlap.dp
    slowest = 0.0
    for rank in ranks:
        tail = 0.0
        if z <= 1:
            scatter = sharing_s(problem, sizes, rank.params, rank.experts, costs.comm_bytes.grad)
            reduce = scatter if z == 1 else 2 * scatter
            tail += max(0.0, reduce - overlap * sum(held.backward_s[k] for k in rank.stages))
        if z in (1, 2):
            gather = sharing_s(problem, sizes, rank.params, rank.experts, costs.comm_bytes.param)
            tail += max(0.0, gather - overlap * sum(held.forward_s[k] for k in rank.stages))
        slowest = max(slowest, tail + update_s(problem, layout, sizes, rank))
    return slowest


def update_s(problem: LayoutProblem, layout: Layout, sizes: Groups, rank: Rank) -> float:
    """The optimizer's step on one rank: over its share from ZeRO stage 1 on, over all without."""
    dense_ranks, expert_ranks = (sizes.dense_ranks, sizes.expert_ranks) if layout.zero_stage else (1, 1)
    return problem.costs.optimizer_s_per_param * (rank.params / dense_ranks + rank.experts / expert_ranks)
