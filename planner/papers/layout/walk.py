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
) -> tuple[RankBytes, ...]:
    """What each pipeline rank holds, in order."""
    each = dict(_bytes(problem, layout, sizes, held, [(rank, rank.places) for rank in ranks]))
    return tuple(each[place] for place in range(layout.pp))


def fullest_bytes(problem: LayoutProblem, layout: Layout, sizes: Groups, held: Stages, ranks: Sequence[Rank]) -> float:
    """What the fullest pipeline rank holds: of ranks that are alike, with equal chunks, none more than the first."""
    which = held.held.which
    asked = [
        (rank, rank.places[:1] if len({which[stage] for stage in rank.stages}) == 1 else rank.places) for rank in ranks
    ]
    return max([one.total for _, one in _bytes(problem, layout, sizes, held, asked)])


def _bytes(
    problem: LayoutProblem, layout: Layout, sizes: Groups, held: Stages, asked: Sequence[tuple[Rank, tuple[int, ...]]]
) -> Iterator[tuple[int, RankBytes]]:
    """Of ranks that are alike those that are asked for, with their places."""
    costs, composed = problem.costs, held.held
    rows = {kind: costs.by_key[layout.row_key(kind)] for kind in composed.kinds}
    stored = {kind: stored_bytes(row, layout.recompute) for kind, row in rows.items()}
    more = {kind: row.kept_bytes - stored[kind] + row.workspace_bytes for kind, row in rows.items()}
    different = [sum([count * stored[kind] for kind, count in layers.items()]) for layers in composed.different]
    group_ranks = (layout.tp, layout.cp, layout.pp, sizes.dense_ranks, layout.ep, layout.etp)
    communicators = float(communicator_bytes(costs.communicator_bytes, group_ranks))
    for rank, places in asked:
        states = rank_states(problem, layout, sizes, rank)
        transient = max([more[kind] for kind in rank.kinds])
        by_chunk = [different[composed.which[stage]] for stage in rank.stages]
        for place in places:
            activations = peak_bytes(layout, sizes.num_micro_batches, place, by_chunk)
            lost = float(fragmentation_bytes(costs.fragmentation, activations, transient))
            yield place, RankBytes(*states, activations, transient, lost, communicators)


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
