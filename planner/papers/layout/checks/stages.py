"""Virtual stages of a layout: units of each kind, their seconds, bytes and parameters (page, 3.2, 3.3 and 3.6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from planner.papers.layout.checks.decision import Decision
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.table import Row, Tiers

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UNITS = ("dense", "moe", "embedding", "head")


@dataclass(frozen=True)
class Groups:
    """Ranks that share a parameter, and how many of a node send out of it: 0 if none do (page, sections 2 and 3.2)."""

    dense: int
    experts: int
    dense_leaving: int
    experts_leaving: int

    def seconds(self, tiers: Tiers, dense_bytes: Floats, expert_bytes: Floats) -> Floats:
        """One all-gather, or one reduce-scatter, of both groups; nothing for no bytes (equation 1 of `memory`)."""
        total = np.zeros(len(dense_bytes))
        for n, leaving, amount in (
            (self.dense, self.dense_leaving, dense_bytes),
            (self.experts, self.experts_leaving, expert_bytes),
        ):
            link = tiers.inter if leaving else tiers.intra
            beta = link.beta_s_per_byte
            if leaving and tiers.inter.beta_of == "gpu":
                # As many ports send at once, but a node's own links carry all of it too.
                beta = max(beta / leaving, tiers.intra.beta_s_per_byte)
            ring_s = (n - 1) * (link.alpha_s + amount / n * beta)
            total = total + np.where(amount > 0, ring_s, 0.0)
        return total


@dataclass(frozen=True)
class Stages:
    """What one layout makes of the table. Per virtual stage, (p·v,): seconds with hops, and bytes of a micro-batch.

    Per unit kind, in the order of UNITS, (4,): parameters and bytes beside what is stored. ``counts`` is (p·v, 4).
    """

    counts: Ints
    forward_s: Floats
    backward_s: Floats
    stored_bytes: Floats
    transient_bytes: Floats
    params: Floats
    expert_params: Floats

    def held(self, pp: int) -> npt.NDArray[np.bool_]:
        """Whether a rank holds a unit of a kind, (p, 4)."""
        return np.asarray(self.counts.reshape(-1, pp, len(UNITS)).sum(axis=0) > 0)


def on_ranks(per_stage: Floats, pp: int) -> Floats:
    """Sums over the chunks of each rank, (p,)."""
    return np.asarray(per_stage.reshape(-1, pp).sum(axis=0))


def groups_of(problem: LayoutProblem, of: Decision) -> Groups:
    """The data-parallel groups of a layout that breaks no rule."""
    num_gpus, node = problem.cluster.num_gpus, problem.cluster.gpus_per_node
    stage = num_gpus // of.pp
    dense, experts = stage // of.tp, stage // (of.ep * of.etp)
    if stage <= node:
        # Either way a group reaches over its whole stage: t·n_d = u·e·n_e = N/p.
        return Groups(dense, experts, 0, 0)
    return Groups(
        dense,
        experts,
        _fewest_in_a_node(num_gpus, node, stage, of.tp),
        _fewest_in_a_node(num_gpus, node, stage, of.ep * of.etp),
    )


@cache
def _fewest_in_a_node(num_gpus: int, node: int, stage: int, stride: int) -> int:
    """Ranks that a group of every stride-th rank of a stage has in one node, the fewest of all such groups and nodes.

    Counted rank by rank: t (of experts u, e) is innermost, then the group's own ranks, stages are outermost.
    """
    nodes = np.arange(num_gpus).reshape(-1, stage // stride, stride) // node
    by_group = nodes.swapaxes(1, 2).reshape(-1, stage // stride)
    begins = np.ones(by_group.shape, dtype=bool)
    begins[:, 1:] = by_group[:, 1:] != by_group[:, :-1]
    return int(np.diff(np.flatnonzero(begins), append=num_gpus).min())


def rows_of(problem: LayoutProblem, of: Decision) -> dict[str, Row] | str:
    """The table's row of every kind that the model has, or the key that is missing."""
    found = {}
    for kind in (*dict.fromkeys(run.kind for run in problem.model.layers), "embedding", "head"):
        experts = (of.ep, of.etp) if kind == "moe" else (0, 0)
        row = problem.costs.by_key.get((kind, of.tp, of.cp, of.sequence_parallel, of.micro_batch, *experts))
        if row is None:
            shown = f"{kind} tp={of.tp} cp={of.cp} sp={str(of.sequence_parallel).lower()} micro_batch={of.micro_batch}"
            return shown + (f" ep={of.ep} etp={of.etp}" if kind == "moe" else "")
        found[kind] = row
    return found


def stages_of(problem: LayoutProblem, of: Decision, rows: dict[str, Row]) -> Stages:
    """All that equations 1 to 3 and the walk of section 3.6 need."""
    costs, groups = problem.costs, groups_of(problem, of)

    def column(name: str) -> Floats:
        return np.array([getattr(rows[kind], name) if kind in rows else 0.0 for kind in UNITS])

    is_layer = np.array([1.0, 1.0, 0.0, 0.0])
    params, expert_params = column("params"), column("expert_params")
    if problem.model.tied_embeddings and of.pp == 1:
        params, expert_params = params * [1, 1, 1, 0], expert_params * [1, 1, 1, 0]
    forward_s, backward_s = column("forward_s"), column("backward_s")
    x, y = forward_s + column("comm_forward_s"), backward_s + column("comm_backward_s")
    again_s = {"none": 0.0 * x, "selective": column("selective_s"), "full": x}[of.recompute]
    y = y + is_layer * again_s
    gather_s = groups.seconds(
        costs.collectives, params * costs.comm_bytes.param, expert_params * costs.comm_bytes.param
    )
    scatter_s = groups.seconds(costs.collectives, params * costs.comm_bytes.grad, expert_params * costs.comm_bytes.grad)
    omega = costs.overlap.dp
    if of.zero_stage == 3:
        x = x + np.maximum(0.0, gather_s - omega * forward_s)
        y = y + np.maximum(0.0, gather_s + scatter_s - omega * backward_s)
    if of.zero_stage == 2:
        y = y + np.maximum(0.0, scatter_s - omega * backward_s)
    kept = column("kept_bytes")
    by_recompute = {"none": "kept_bytes", "selective": "selective_bytes", "full": "input_bytes"}
    stored = np.where(is_layer > 0, column(by_recompute[of.recompute]), kept)
    counts, hop_s = unit_counts(problem, of), _hop_s(problem, of)
    last = np.arange(len(counts)) == len(counts) - 1
    return Stages(
        counts=counts,
        forward_s=counts @ x + np.where(last, 0.0, hop_s),
        backward_s=counts @ y + np.where(last[::-1], 0.0, hop_s),
        stored_bytes=np.asarray(counts @ stored, dtype=np.float64),
        transient_bytes=kept - stored + column("workspace_bytes"),
        params=params,
        expert_params=expert_params,
    )


def unit_counts(problem: LayoutProblem, of: Decision) -> Ints:
    """Units by virtual stage and kind, (p·v, 4): the embedding joins the first stage, the head the last."""
    ends = np.cumsum(of.partition)
    moe_before = _moe_before(tuple((run.kind, run.count) for run in problem.model.layers))
    moe = np.diff(moe_before[ends], prepend=0)
    counts = np.zeros((len(ends), len(UNITS)), dtype=np.int64)
    counts[:, 0], counts[:, 1] = np.array(of.partition) - moe, moe
    counts[0, 2] = counts[-1, 3] = 1
    return counts


@cache
def _moe_before(runs: tuple[tuple[str, int], ...]) -> Ints:
    """How many of the first n layers are moe, n = 0 … L."""
    return np.array([0, *accumulate(int(kind == "moe") for kind, count in runs for _ in range(count))])


def _hop_s(problem: LayoutProblem, of: Decision) -> float:
    """h_p of equation 3: what shows of one hop of the pipeline."""
    if of.pp == 1:
        return 0.0
    costs = problem.costs
    link = costs.p2p.inter if problem.cluster.num_gpus > problem.cluster.gpus_per_node else costs.p2p.intra
    shards = of.cp * (of.tp if of.sequence_parallel else 1)
    sent = costs.boundary_bytes_per_sample * of.micro_batch / shards
    return (1 - costs.overlap.p2p) * (link.alpha_s + link.beta_s_per_byte * sent)
