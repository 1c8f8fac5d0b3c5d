"""The derived-cost form of the problem file: a profile, a model and a batch instead of a cost table.

``cost.py`` turns it into the explicit form. Every bound is here.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.derivation.bytes_per_parameter import BytesPerParameter
from planner.derivation.hardware import Hardware
from planner.derivation.memory_budget import MemoryBudget
from planner.derivation.moe.dtypes import Multiplied
from planner.derivation.moe.forward import activation_dtype
from planner.derivation.training.calibration import Calibration
from planner.derivation.training_code import TrainingCode
from planner.json_text import Json
from planner.memory.allocator import COMMUNICATOR_BYTES, CONTEXT_BYTES
from planner.papers.layout.problem import Batch, PartitionKind, Recompute, Rules
from planner.papers.layout.table import Bytes, BytesSent, Degree, Overlap, Seconds
from planner.validation import Document, Many, fault
from profiles.geometry.spec import ModelSpec

MAX_TOKENS = 1 << 24

OF_SEARCH = "null: all that the model and the cluster admit, within the bounds of the page"


class DeviceMemory(MemoryBudget):
    """What a GPU has. Communicators, workspaces and fragmentation are counted by themselves here."""

    reserve_bytes: float = Field(
        default=CONTEXT_BYTES,
        ge=0,
        le=1e18,
        description="what the driver keeps of the card, the context, libraries' workspaces",
    )


class DerivedSearch(Document):
    """The lists of the explicit form; those left out are filled in."""

    tp: Many[Degree] | None = Field(default=None, description=OF_SEARCH)
    cp: Many[Degree] | None = Field(default=None, description=OF_SEARCH)
    pp: Many[Degree] | None = Field(default=None, description=OF_SEARCH)
    vpp: Many[Degree] | None = Field(default=None, description=OF_SEARCH)
    ep: Many[Degree] | None = Field(default=None, description=OF_SEARCH)
    etp: Many[Degree] | None = Field(default=None, description=OF_SEARCH)
    zero_stage: Many[Annotated[int, Field(ge=0, le=3)]] | None = Field(default=None, description=OF_SEARCH)
    recompute: Many[Recompute] | None = Field(default=None, description=OF_SEARCH)
    micro_batch: Many[Degree] | None = Field(default=None, description=OF_SEARCH)
    sequence_parallel: Many[bool] | None = Field(default=None, description=OF_SEARCH)
    partitions: Many[PartitionKind] | None = Field(default=None, description=OF_SEARCH)
    keep: int = Field(default=20, ge=0, le=1000, description="alternatives that are listed")


class Runs(Document):
    """Measured runs of this model on this cluster's devices: they take the place of a stated calibration."""

    path: str = Field(min_length=1, max_length=1000, description="a CSV file beside the problem")
    groups: Many[Annotated[str, Field(min_length=1, max_length=200)]] | None = Field(
        default=None, description="values of its column group; null: all runs"
    )


class Derive(Hardware):
    """Where the costs come from: the layers of a model in training, cut over the ranks of a cluster."""

    model: str | ModelSpec = Field(description="a built-in model's name, a config.json, or its sizes")
    dtype: Multiplied = Field(default="bf16", description="of products but the router's, experts' and head's")
    expert_dtype: Multiplied | None = Field(default=None, description="of the routed experts; null: dtype")
    workload: str = Field(
        default="balanced", min_length=1, max_length=100, description="how tokens were routed in the rows of experts"
    )
    load_factor: float = Field(
        default=1.0, ge=1, le=1000, description="copies of tokens on the fullest rank of experts over the mean"
    )
    training_code: TrainingCode = TrainingCode()
    bytes_per_param: BytesPerParameter = BytesPerParameter()
    comm_bytes: BytesSent | None = Field(default=None, description="null: parameters and gradients as they are kept")
    memory: DeviceMemory = DeviceMemory()
    fragmentation: float = Field(
        default=0.0, ge=0, le=1, description="share of activations and transient that the allocator loses"
    )
    communicator_bytes: Bytes = Field(default=COMMUNICATOR_BYTES, description="for each group of more than one rank")
    overlap: Overlap | None = Field(
        default=None, description="null: nothing is hidden, with a warning; measure it, or state it"
    )
    optimizer_s_per_param: Seconds | None = Field(
        default=None, description="null: its bytes read and written at the speed of memory"
    )
    calibration: Calibration = Calibration()
    runs: Runs | None = Field(default=None, description="null: prices as the calibration states")

    @model_validator(mode="after")
    def _calibrated_once(self) -> Self:
        if self.runs is not None and self.calibration != Calibration():
            raise fault("expected a calibration, or runs to fit it to, got both", where="runs")
        return self

    @property
    def experts_dtype(self) -> str:
        """Of the routed experts' products."""
        return self.expert_dtype or self.dtype

    @property
    def activation_dtype(self) -> str:
        """Of activations, the router and the head: 16 bits unless the products are wider."""
        return activation_dtype(self.dtype)

    @property
    def sent(self) -> BytesSent:
        """Bytes of a parameter and of a gradient on the wire."""
        kept = self.bytes_per_param
        return self.comm_bytes or BytesSent(param=kept.param, grad=kept.grad)


class LayoutDerivedProblem(Document):
    """The derived-cost form."""

    paper: Literal["layout"] = "layout"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    launcher_rules: Rules = Field(default="none", description="whose rules a layout must keep")
    objective: Literal["step_time"] = Field(default="step_time", description="what is least")
    batch: Batch
    search: DerivedSearch = DerivedSearch()
    derive: Derive
    notes: Json = Field(default=None, description="kept, never read")

    @model_validator(mode="after")
    def _tokens_are_few(self) -> Self:
        if self.batch.sequence_length > MAX_TOKENS:
            message = f"expected at most {MAX_TOKENS:,} tokens, got {self.batch.sequence_length:,}"
            raise fault(message, code="too_large", where="batch.sequence_length")
        return self
