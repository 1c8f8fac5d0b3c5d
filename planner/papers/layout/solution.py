"""The solution document (page, section 7): the layout, its figures, what else there was and why it loses."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.papers.layout.problem import Recompute
from planner.papers.layout.table import Degree
from planner.validation import Document, Many

Rule = Literal["pure_dp", "fsdp", "zero3", "full_recompute", "megatron_rule"]
"""The baselines (page, section 5)."""

RULES = (
    "world_size", "expert_world_size", "no_experts", "expert_split", "tp_crosses_node", "heads", "cp_sequence",
    "sp_without_tp", "sp_sequence", "global_batch", "vpp_without_pp", "interleave_micro_batches", "moe_needs_sp",
    "megatron_zero_stage", "deepspeed_zero_pipeline", "deepspeed_interleave", "deepspeed_cp", "torchtitan_fsdp",
    "torchtitan_ep", "torchtitan_sp", "partition", "row_not_in_table", "memory",
)  # fmt: skip
"""What excludes a candidate, in order (page, section 3.1); the first broken one counts."""


class Figures(Document):
    """A layout and what it comes to. The decision: tp to etp, zero_stage to micro_batch, and partition."""

    tp: Degree = Field(description="tensor-parallel degree, t")
    cp: Degree = Field(description="context-parallel degree, c")
    pp: Degree = Field(description="pipeline stages, p")
    vpp: Degree = Field(description="chunks of layers on each rank, v")
    ep: Degree = Field(description="expert-parallel degree, e")
    etp: Degree = Field(description="tensor-parallel degree of experts, u")
    dp: int = Field(description="data-parallel degree, d")
    zero_stage: int = Field(ge=0, le=3, description="z")
    recompute: Recompute
    sequence_parallel: bool
    micro_batch: Degree = Field(description="b, sequences")
    num_micro_batches: int = Field(description="m, of a step on each rank")
    partition: Many[Degree] = Field(description="layers of each virtual stage, chunk * pp + rank")
    pipeline_s: float = Field(description="from the first forward to the last backward")
    tail_s: float = Field(description="reduce, gather and update after it, on the slowest rank")
    step_time_s: float = Field(description="the objective")
    tokens_per_s_per_gpu: float
    peak_memory_bytes: float = Field(description="of the fullest rank, without the reserve")


class Alternative(Figures):
    """Another layout that fits."""

    reason: str = Field(description="why it loses to the chosen one")
    ratio: float = Field(description="its step time over that of the chosen one")


class Neighbour(Document):
    """The chosen layout with one decision changed. No figures where a rule forbids it."""

    field: str = Field(description="the decision that is changed")
    value: int | str | bool | Many[int] = Field(description="what it is changed to")
    reason: str = Field(description="why it loses, or the rule that forbids it")
    ratio: float | None = Field(default=None, description="its step time over that of the chosen layout")
    step_time_s: float | None = None
    peak_memory_bytes: float | None = None


class LayoutSolution(Figures):
    """The layout and all that was weighed against it."""

    alternatives: Many[Alternative] = Field(default=(), description="the best others, best first")
    pareto: Many[Alternative] = Field(default=(), description="none is both faster and smaller; fastest first")
    neighbours: Many[Neighbour] = Field(default=(), description="the chosen layout with one decision changed")
    combinations: int | None = Field(default=None, description="product of the search lists, without partitions")
    legal: int | None = Field(default=None, description="layouts, partitions told apart, that keep all but memory")
    excluded: dict[Annotated[str, Field(max_length=60)], int] | None = Field(
        default=None, description="how many broke which rule first: combinations, for memory layouts"
    )
    rule: Rule | None = Field(default=None, description="the baseline that chose; null: the best of all")
