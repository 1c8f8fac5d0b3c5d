"""Forward and backward seconds of every virtual stage, one micro-batch (page, 3.3, equations 1 to 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.memory.collectives import gather_s
from planner.papers.layout.composition import Composition, Counts, composition
from planner.papers.layout.layouts import Groups, Layout
from planner.papers.layout.problem import LayoutProblem, Recompute
from planner.papers.layout.table import Kind, Row


@dataclass(frozen=True, slots=True)
class Stages:
    """By virtual stage, chunk * pp + rank: seconds of one micro-batch, hops included, and what it holds."""

    forward_s: tuple[float, ...]
    backward_s: tuple[float, ...]
    held: Composition

    @property
    def layers(self) -> tuple[Counts, ...]:
        """Of each kind."""
        return self.held.layers


def stages(problem: LayoutProblem, layout: Layout, sizes: Groups) -> Stages:
    """Times of every virtual stage of a layout that keeps the rules."""
    held = composition(problem.model.layers, layout.partition, layout.pp)
    times = {
        kind: layer_times_s(problem, layout, sizes, problem.costs.by_key[layout.row_key(kind)]) for kind in held.kinds
    }
    hop = hop_s(problem, layout, sizes)
    different = [_layers_s(counts, times) for counts in held.different]
    forward = [different[place][0] + hop for place in held.which]
    backward = [different[place][1] + hop for place in held.which]
    forward[-1] = different[held.which[-1]][0] + 0.0
    backward[0] = different[held.which[0]][1] + 0.0
    return Stages(tuple(forward), tuple(backward), held)


def _layers_s(counts: Counts, times: Mapping[Kind, tuple[float, float]]) -> tuple[float, float]:
    """Forward and backward of so many layers of each kind."""
    forward = backward = 0.0
    for kind, count in counts.items():
        forward += count * times[kind][0]
        backward += count * times[kind][1]
    return forward, backward


def layer_times_s(
    problem: LayoutProblem, layout: Layout, sizes: Groups, row: Row, *, shared: bool = True
) -> tuple[float, float]:
    """x and y of equations 1 and 2: forward and backward of one layer, with what of its shards' traffic shows.

    Without ``shared`` as though it had no shards.
    """
    overlap = problem.costs.overlap.dp
    forward = row.forward_s + row.comm_forward_s
    backward = row.backward_s + row.comm_backward_s
    if row.kind in ("dense", "moe"):
        backward += recomputed_s(row, layout.recompute, forward)
    if shared and layout.zero_stage >= 2:
        params, experts = parameters(problem, layout, row)
        scatter = sharing_s(problem, sizes, params, experts, problem.costs.comm_bytes.grad)
        gather = 0.0
        if layout.zero_stage == 3:
            gather = sharing_s(problem, sizes, params, experts, problem.costs.comm_bytes.param)
            forward += max(0.0, gather - overlap * row.forward_s)
        backward += max(0.0, gather + scatter - overlap * row.backward_s)
    return forward, backward


def recomputed_s(row: Row, recompute: Recompute, forward_s: float) -> float:
    """What the backward of a layer runs again."""
    return {"none": 0.0, "selective": row.selective_s, "full": forward_s}[recompute]


def parameters(problem: LayoutProblem, layout: Layout, row: Row) -> tuple[float, float]:
    """Dense and expert parameters of a layer on one rank before sharding; one matrix where both ends share it."""
    if row.kind == "head" and problem.model.tied_embeddings and layout.pp == 1:
        return 0.0, 0.0
    return row.params, row.expert_params


def sharing_s(problem: LayoutProblem, sizes: Groups, params: float, experts: float, bytes_each: float) -> float:
    """An all-gather or a reduce-scatter of parameters over their groups; nothing of nothing."""
    collectives = problem.costs.collectives
    total = 0.0
    for count, ranks, crosses, num_ports in (
        (params, sizes.dense_ranks, sizes.dense_crosses, sizes.dense_ports),
        (experts, sizes.expert_ranks, sizes.expert_crosses, sizes.expert_ports),
    ):
        if count and ranks > 1:
            alpha_s = collectives.link(crosses=crosses).alpha_s
            beta = collectives.beta_s_per_byte(crosses=crosses, num_ports=num_ports)
            total += gather_s(ranks, count * bytes_each, alpha_s, beta)
    return total


def hop_s(problem: LayoutProblem, layout: Layout, sizes: Groups) -> float:
    """h_p: one message between two stages as far as it shows; zero of one stage."""
    if layout.pp == 1:
        return 0.0
    costs = problem.costs
    link = costs.p2p.link(crosses=sizes.hop_crosses)
    split = layout.cp * (layout.tp if layout.sequence_parallel else 1)
    message = costs.boundary_bytes_per_sample * layout.micro_batch / split
    return (1 - costs.overlap.p2p) * (link.alpha_s + link.beta_s_per_byte * message)
