"""What every pipeline rank holds at its peak, by cause (page, section 3.6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from planner.memory.allocator import communicator_bytes, fragmentation_bytes
from planner.memory.in_flight import peak_resident, warm_up_chunks
from planner.memory.states import States, zero_states
from planner.papers.layout.layouts import Groups, Layout
from planner.papers.layout.problem import LayoutProblem, Recompute
from planner.papers.layout.ranks import Rank
from planner.papers.layout.stage_times import Stages
from planner.papers.layout.table import Row

CAUSES = ("weights", "gradients", "optimizer", "activations", "transient", "fragmentation", "communicators")


class RankBytes(NamedTuple):
    """Bytes of one pipeline rank at its peak, without the reserve."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    transient: float
    fragmentation: float
    communicators: float

    @property
    def total(self) -> float:
        """All of them."""
        return (
            self.weights + self.gradients + self.optimizer + self.activations + self.transient + self.fragmentation
            + self.communicators
        )  # fmt: skip

    def by_cause(self) -> dict[str, float]:
        """In the order of ``CAUSES``."""
        return {cause: getattr(self, cause) for cause in CAUSES}


def rank_bytes(
    problem: LayoutProblem, layout: Layout, sizes: Groups, held: Stages, ranks: Sequence[Rank]
) -> Iterator[RankBytes]:
    """What each of the ranks holds."""
    costs = problem.costs
    rows = {kind: costs.by_key[layout.row_key(kind)] for kind in {kind for rank in ranks for kind in rank.kinds}}
    stored = {kind: stored_bytes(row, layout.recompute) for kind, row in rows.items()}
    by_stage = [sum(count * stored[kind] for kind, count in layers.items()) for layers in held.layers]
    group_ranks = (layout.tp, layout.cp, layout.pp, sizes.dense_ranks, layout.ep, layout.etp)
    communicators = float(communicator_bytes(costs.communicator_bytes, group_ranks))
    fragmented = costs.fragmentation
    # Most ranks hold the same and differ in what is in flight alone.
    alike: dict[Rank, tuple[States, float]] = {}
    for place, rank in enumerate(ranks):
        key = rank._replace(stages=range(0))
        if key not in alike:
            more = (rows[kind].kept_bytes - stored[kind] + rows[kind].workspace_bytes for kind in rank.kinds)
            alike[key] = rank_states(problem, layout, sizes, rank), max(more)
        (weights, gradients, optimizer), transient = alike[key]
        activations = peak_bytes(layout, sizes.num_micro_batches, place, [by_stage[k] for k in rank.stages])
        lost = float(fragmentation_bytes(fragmented, activations, transient))
        yield RankBytes(weights, gradients, optimizer, activations, transient, lost, communicators)


def rank_states(problem: LayoutProblem, layout: Layout, sizes: Groups, rank: Rank) -> States:
    """Weights, gradients and optimizer states of a rank: those that all share and those of its experts."""
    each = problem.costs.bytes_per_param
    dense, expert = (
        zero_states(
            layout.zero_stage,
            count,
            shard_ranks=shards,
            unit=unit,
            param_bytes=each.param,
            grad_bytes=each.grad,
            optimizer_bytes=each.optimizer,
        )
        for count, shards, unit in (
            (rank.params, sizes.dense_ranks, rank.params_unit),
            (rank.experts, sizes.expert_ranks, rank.experts_unit),
        )
    )
    return States(*(float(one + other) for one, other in zip(dense, expert, strict=True)))


def stored_bytes(row: Row, recompute: Recompute) -> float:
    """Activations of one layer and micro-batch from its forward to its backward; the ends are never recomputed."""
    if row.kind in ("embedding", "head"):
        return row.kept_bytes
    return {"none": row.kept_bytes, "selective": row.selective_bytes, "full": row.input_bytes}[recompute]


def peak_bytes(layout: Layout, num_micro_batches: int, rank: int, by_chunk: list[float]) -> float:
    """The most that a rank holds along its order, chunk by chunk; equal chunks need to be counted alone."""
    if min(by_chunk) == max(by_chunk):
        warm_up = warm_up_chunks(
            "interleaved",
            rank,
            num_stages=layout.pp,
            num_micro_batches=num_micro_batches,
            chunks_per_rank=layout.vpp,
        )
        return min(num_micro_batches * layout.vpp, warm_up + 1) * by_chunk[0]
    return peak_resident("interleaved", rank, by_chunk, num_stages=layout.pp, num_micro_batches=num_micro_batches)
