"""The derived-cost form of the problem file: a profile, a model and a parallel layout instead of costs.

``cost.py`` turns it into the explicit form. Every bound is here.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.derivation.hardware import Hardware
from planner.derivation.moe.dtypes import Multiplied, Stored
from planner.json_text import Json
from planner.papers.compass.problem import MAX_EXTENT, OF_RULES, STRATEGIES, Contention, Rules, Strategy
from planner.papers.compass.runs.document import FilePath, Runs
from planner.validation import Document, Identity, Many, fault, refuse_duplicates
from profiles.families import DTYPE_BYTES
from profiles.geometry.spec import ModelSpec

Ring = Literal["single_ring", "double_ring"]

MAX_TOKENS = 1 << 24


class FusedRing(Document):
    """Fused ring kernels by their model (eq. 7): no profile has rows of one, so these numbers are taken on trust."""

    kernels: Many[Ring] = Field(default=("single_ring", "double_ring"), description="those that exist")
    single_ring_slowdown: float = Field(default=1.12, ge=1, le=100, description="rho: of the GEMM inside the kernel")
    double_ring_slowdown: float = Field(default=1.25, ge=1, le=100, description="rho: likewise")
    tile_s: float = Field(default=6e-6, ge=0, le=1, description="a_tile: start-up of one shard's GEMM")
    hop_s: float = Field(default=3e-6, ge=0, le=1, description="alpha_hop: start-up of one hop over a link")
    bandwidth_bytes_per_s: float | None = Field(
        default=None,
        ge=1e7,
        le=1e13,
        description="beta: of the ring's slowest link, for each direction; null: the cluster's where its node has "
        "islands, else hops take their part of the profile's collective, both ways through one port",
    )

    @model_validator(mode="after")
    def _some_kernels(self) -> Self:
        if not self.kernels:
            raise fault("expected at least one kernel, got none", where="kernels")
        refuse_duplicates(self.kernels, "kernel", "kernels")
        return self

    def slowdown(self, kernel: Ring) -> float:
        """rho of a kernel."""
        return self.single_ring_slowdown if kernel == "single_ring" else self.double_ring_slowdown


class Sweeps(Document):
    """Measured runs of each stage of an operator alone, as `runs.document.Stages`; its sizes are known."""

    path: FilePath
    comm_bytes: float | None = Field(default=None, gt=0, le=1e24, description="V; null: the operator's message")
    gemm_rows: float | None = Field(default=None, gt=0, le=1e24, description="M; null: the operator's rows")


class Derive(Hardware):
    """Where the costs come from: the layers of a model, cut over ``tp_size`` GPUs of one node as Megatron does."""

    model: str | ModelSpec = Field(description="a built-in model's name, a config.json, or its sizes")
    dtype: Multiplied = Field(default="bf16", description="of all GEMMs, forward and backward")
    tp_size: int = Field(ge=2, le=65536, description="p: ranks of a tensor-parallel group, inside one node")
    sequence_tokens: int = Field(ge=1, le=MAX_TOKENS, description="tokens of a sequence")
    micro_batch: int = Field(default=1, ge=1, le=65536, description="sequences of a micro-batch")
    micro_batches: int = Field(default=1, ge=1, le=65536, description="micro-batches of a step")
    sequence_parallel: bool = Field(
        default=True, description="all-gather and reduce-scatter of shards of the sequence, else all-reduce"
    )
    passes: Literal["forward", "forward_backward"] = Field(
        default="forward_backward", description="forward alone is inference, or a forward pass of training"
    )
    gather_dtype: Stored | None = Field(
        default=None, description="of what is gathered or dispatched; null: 16 bits, or as wide as the GEMMs"
    )
    expert_parallel_size: int | None = Field(
        default=None, ge=2, le=65536, description="ranks that share the experts of a layer; null: experts are left out"
    )
    workload: str = Field(
        default="balanced", min_length=1, max_length=100, description="how tokens were routed in the rows of experts"
    )
    split_multiple: int | None = Field(
        default=None,
        ge=1,
        le=65536,
        description="e: a chunk is a multiple of it; null: for each operator the largest of 128, 64, ... 1 that leaves "
        "a degree",
    )
    max_degree: int = Field(default=32, ge=1, le=4096, description="most chunks")
    contention: Contention | None = Field(
        default=None, description="measured slow-down of each stage while the other runs; null: none, with a warning"
    )
    fused: FusedRing | None = Field(default=None, description="null: no fused kernel is offered")
    fit: Literal["table", "line"] = Field(
        default="table", description="eq. 2 on prices, degree by degree; or on the lines a + v / d fitted to them"
    )
    allowed_strategies: Many[Strategy] = STRATEGIES
    runs: dict[Identity, Runs] = Field(
        default={}, description="by operator: measured runs, which take the place of its prices by degree"
    )
    stages: dict[Identity, Sweeps] = Field(
        default={}, description="by operator: measured runs of each stage, which take the place of all its prices"
    )

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if not self.allowed_strategies:
            raise fault("expected at least one strategy, got none", where="allowed_strategies")
        refuse_duplicates(self.allowed_strategies, "strategy", "allowed_strategies")
        if self.tokens > MAX_EXTENT:
            message = f"expected at most {MAX_EXTENT:,} tokens in a micro-batch, got {self.tokens:,}"
            raise fault(message, code="too_large", where="micro_batch")
        if self.sequence_parallel and self.tokens % self.tp_size:
            raise fault(
                f"expected tp_size to divide the {self.tokens:,} tokens of a micro-batch, whose shards it gathers, "
                f"got {self.tp_size}",
                where="tp_size",
            )
        if self.expert_parallel_size is not None and not self.sequence_parallel:
            message = "experts beside tensor parallelism need sequence_parallel: each rank dispatches its shard"
            raise fault(message, where="expert_parallel_size")
        return self

    @property
    def tokens(self) -> int:
        """M: tokens of a micro-batch."""
        return self.sequence_tokens * self.micro_batch

    @property
    def backward(self) -> bool:
        """Whether gradients are computed too."""
        return self.passes == "forward_backward"

    @property
    def activation_dtype(self) -> str:
        """Of activations: 16 bits unless the GEMMs are wider."""
        return self.dtype if self.dtype in ("bf16", "fp16", "fp32", "tf32") else "bf16"

    @property
    def gathered_bytes(self) -> float:
        """Bytes of one number that is gathered or dispatched."""
        return float(DTYPE_BYTES[self.gather_dtype or self.activation_dtype])

    @property
    def reduced_bytes(self) -> float:
        """Bytes of one number that is reduced."""
        return float(DTYPE_BYTES[self.activation_dtype])


class CompassDerivedProblem(Document):
    """The derived-cost form."""

    paper: Literal["compass"] = "compass"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    derive: Derive
    launcher_rules: Rules = Field(default="none", description=OF_RULES)
    notes: Json = Field(default=None, description="kept, never read")

    @model_validator(mode="after")
    def _rules_have_the_layout(self) -> Self:
        if self.launcher_rules == "none":
            return self
        if not self.derive.sequence_parallel:
            message = "launcher_rules transformer_engine overlaps shards of the sequence: it needs sequence_parallel"
            raise fault(message, where="derive.sequence_parallel")
        if self.derive.fused is not None:
            message = "launcher_rules transformer_engine has no fused kernels: leave derive.fused out"
            raise fault(message, where="derive.fused")
        return self
