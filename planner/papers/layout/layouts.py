"""A layout, the order of ties among layouts, and the groups of ranks that follow from its degrees (page, 3.2)."""

from __future__ import annotations

from dataclasses import dataclass

from planner.papers.layout.ports import least_shared
from planner.papers.layout.problem import RECOMPUTE, LayoutProblem, Recompute
from planner.papers.layout.solution import Figures
from planner.papers.layout.table import Key, Kind

TIE_ORDER = (
    "tp", "cp", "pp", "vpp", "ep", "etp", "zero_stage", "recompute", "micro_batch", "sequence_parallel", "partition",
)  # fmt: skip
"""What tells equally fast layouts of equal peak apart, ascending (page, section 4)."""

TieKey = tuple[int, int, int, int, int, int, int, int, int, bool, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Layout:
    """One point of the search. ``partition``: layers of virtual stage chunk * pp + rank; empty where not yet cut."""

    tp: int
    cp: int
    pp: int
    vpp: int
    ep: int
    etp: int
    zero_stage: int
    recompute: Recompute
    micro_batch: int
    sequence_parallel: bool
    partition: tuple[int, ...] = ()

    @property
    def tie_key(self) -> TieKey:
        """In the order of ``TIE_ORDER``."""
        return (
            self.tp, self.cp, self.pp, self.vpp, self.ep, self.etp, self.zero_stage, RECOMPUTE.index(self.recompute),
            self.micro_batch, self.sequence_parallel, self.partition,
        )  # fmt: skip

    def row_key(self, kind: Kind) -> Key:
        """The row of the cost table that prices a layer of a kind."""
        ep, etp = (self.ep, self.etp) if kind == "moe" else (0, 0)
        return (kind, self.tp, self.cp, self.sequence_parallel, self.micro_batch, ep, etp)


def layout_of(row: Figures) -> Layout:
    """The layout that a row of a solution states."""
    return Layout(
        row.tp, row.cp, row.pp, row.vpp, row.ep, row.etp, row.zero_stage, row.recompute, row.micro_batch,
        row.sequence_parallel, row.partition,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Groups:
    """Sizes of the groups of a layout that keeps the rules, which of them cross nodes, and through how many ports."""

    dp: int
    num_micro_batches: int
    dense_ranks: int
    expert_ranks: int
    dense_ports: int
    expert_ports: int
    dense_crosses: bool
    expert_crosses: bool
    hop_crosses: bool


def groups(problem: LayoutProblem, layout: Layout) -> Groups:
    """d, m, n_d = d c and n_e = N/(p e u), with the tier of each group: ranks run t first, then c, d, p."""
    num_gpus, node = problem.cluster.num_gpus, problem.cluster.gpus_per_node
    dp = num_gpus // (layout.tp * layout.cp * layout.pp)
    dense = dp * layout.cp
    expert = num_gpus // (layout.pp * layout.ep * layout.etp)
    shared = least_shared(num_gpus, node, layout.pp)
    return Groups(
        dp=dp,
        num_micro_batches=problem.batch.global_batch_size // (layout.micro_batch * dp),
        dense_ranks=dense,
        expert_ranks=expert,
        dense_ports=max(1, shared // layout.tp),
        expert_ports=max(1, shared // (layout.ep * layout.etp)),
        dense_crosses=layout.tp * dense > node,
        expert_crosses=layout.etp * layout.ep * expert > node,
        hop_crosses=num_gpus > node,
    )
