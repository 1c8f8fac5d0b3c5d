"""The derived-cost form of the problem file: a profile, a model and a cluster instead of costs.

``cost.py`` turns it into the explicit form. Every bound is here.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.derivation.hardware import Hardware
from planner.derivation.moe.dtypes import Stored
from planner.json_text import Json
from planner.papers.hiermoe.problem import InitialMap, Layer, Objective, Search
from planner.validation import Document, Many
from profiles.families import DTYPE_BYTES
from profiles.geometry.spec import ModelSpec

Multiplied = Literal[
    "bf16", "fp16", "fp8", "fp8_block", "int8", "nvfp4", "w8a16", "w4a16", "w4a8", "w4a16_mxfp4", "w4a8_mxfp4_mxfp8",
]  # fmt: skip
"""What experts are stored and multiplied in; the profile needs a table for it."""

FP8_GROUP = 128
"""Numbers that share a 32-bit scale where a token is sent in fp8, as DeepEP sends them."""
SCALE_BYTES = 4


class Derive(Hardware):
    """Where the costs come from. Ranks are the expert-parallel group: the cluster's, all of them."""

    model: str | ModelSpec = Field(description="a built-in model's name, a config.json, or its sizes")
    dtype: Multiplied = Field(default="bf16", description="of the routed experts")
    dispatch_dtype: Stored = Field(default="bf16", description="of the tokens sent to experts")
    level_groups: Many[int] | None = Field(
        default=None, description="groups of each level; null: the cluster's tiers, from the outermost to the innermost"
    )
    workload: str = Field(
        default="balanced", min_length=1, max_length=100, description="how tokens were routed in the rows of experts"
    )
    expert_memory_bytes_per_gpu: int | None = Field(
        default=None, ge=0, le=2**60, description="for the experts of all layers here; null: unlimited"
    )

    def token_bytes(self, hidden: int) -> float:
        """Mv: bytes of one dispatched token, the scales of fp8 (a group of 128) and of int8 (a token) included."""
        scales = {"fp8": -(-hidden // FP8_GROUP), "int8": 1}.get(self.dispatch_dtype, 0)
        return hidden * float(DTYPE_BYTES[self.dispatch_dtype]) + scales * SCALE_BYTES


class HiermoeDerivedProblem(Document):
    """The derived-cost form: experts and top_k are the model's, topology and costs are looked up."""

    paper: Literal["hiermoe"] = "hiermoe"
    format_version: str = "1.0"
    derive: Derive
    redundant_slots: int = Field(default=0, ge=0, le=2**24)
    objective: Objective = Objective()
    layers: Many[Layer]
    initial_map: InitialMap | None = None
    search: Search = Search()
    forbid_same_rank_replicas: bool = True
    notes: Json = None
