"""The derived-cost form of the problem file: a profile, a model and a cluster instead of costs.

``cost.py`` turns it into the explicit form. Every bound is here.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from planner.derivation.memory_budget import MemoryBudget
from planner.derivation.moe.dtypes import MoeHardware, Stored
from planner.json_text import Json
from planner.papers.janus.costs import Activated, Combine, Limits, Prices
from planner.papers.janus.problem import MAX_EXPERTS, Arrivals, FixedRatio, Interval, Layer, Rules, refuse_one_demand
from planner.validation import Document, Forms, Identity, Many, fault, refuse_duplicates
from profiles.families import DTYPE_BYTES
from profiles.geometry.spec import ModelSpec


class DerivedLimits(Document):
    """GPUs that may be used; null: as many as the cluster has, of a device: as the problem says."""

    max_attention_instances: int | None = Field(default=None, ge=1, le=65536)
    max_expert_instances: int | None = Field(default=None, ge=1, le=65536)
    max_total_instances: int | None = Field(default=None, ge=1, le=131072)

    def filled(self, limits: Limits) -> Limits:
        """With those of others where none is stated."""
        return limits.model_copy(update=self.model_dump(exclude_none=True))


class DerivedDevice(Document):
    """A pair of devices that may carry the two sides, each by the profile of its device."""

    id: Identity
    attention_profile: str | None = Field(
        default=None, min_length=1, max_length=1000, description="null: the problem's own"
    )
    expert_profile: str | None = Field(
        default=None, min_length=1, max_length=1000, description="null: the problem's own"
    )
    prices: Prices | None = None
    limits: DerivedLimits | None = Field(default=None, description="null: the problem's own")


class DerivedBaselines(FixedRatio):
    """What some baselines need to be told beside the model; null: that one is left out."""

    monolithic: bool = Field(default=True, description="expert-parallel over whole nodes, priced by the same profile")


class Derive(MoeHardware):
    """Where the costs come from. The cluster's ranks are the GPUs owned."""

    model: str | ModelSpec = Field(description="a built-in model's name, a config.json, or its sizes")
    sent_dtype: Stored | None = Field(default=None, description="of what the pools send; null: as activations")
    attention: Combine = Field(
        default="sum", description="how floor and requests are fitted: as they add up, or the larger, as the paper"
    )
    links_per_node: int | None = Field(
        default=None,
        ge=1,
        le=65536,
        description="links between nodes that a node may use at once, one an instance at either end; null: one a GPU; "
        "1: only the GPU that gathered what it sends",
    )
    workload: str = Field(
        default="balanced", min_length=1, max_length=100, description="rows of experts whose tokens are routed evenly"
    )
    slots_per_instance: int | None = Field(
        default=None, ge=1, le=MAX_EXPERTS, description="C; null: as many as the memory holds, all experts at most"
    )
    memory: MemoryBudget | None = Field(default=MemoryBudget(), description="null: unlimited")
    devices: Many[DerivedDevice] = Field(default=(), description="pairs to choose from; none: the profile's own device")
    baselines: DerivedBaselines = DerivedBaselines()

    @model_validator(mode="after")
    def _devices_differ(self) -> Self:
        refuse_duplicates([device.id for device in self.devices], "device", "devices")
        if self.memory is None and self.slots_per_instance is None:
            message = 'missing field "slots_per_instance": without memory nothing tells how many experts fit'
            raise fault(message, code="missing_field", where="slots_per_instance")
        return self

    @property
    def sent_bytes(self) -> float:
        """Bytes of one number that the pools send."""
        return float(DTYPE_BYTES[self.sent_dtype or self.activation_dtype])


class JanusDerivedProblem(Forms):
    """What the derived forms of both sizing tasks have; E, K and the layers are the model's."""

    told_by: ClassVar[str] = "task"

    paper: Literal["janus"] = "janus"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    derive: Derive
    slo_tpot_s: float = Field(gt=0, le=1e9, description="most seconds of an output token")
    a_max: Activated | None = Field(
        default=None,
        description="null: binomial_bound on powers of two; a closed form that is stated states its batch_grid",
    )
    limits: DerivedLimits | None = Field(default=None, description="null: all of the cluster's ranks")
    launcher_rules: Rules = Field(
        default="none", description="vllm_afd: attention instances are a multiple of expert instances"
    )
    prices: Prices | None = Field(default=None, description="given: the price is the objective in place of GPUs")
    price_unit: str = Field(default="USD", min_length=1, max_length=20)
    layers: Many[Layer] = Field(default=(), description="traced layers, for copies and placement of their experts")
    notes: Json = Field(default=None, description="kept, never read")


class DerivedScaling(JanusDerivedProblem):
    """The pools for one demand."""

    task: Literal["scaling"]
    demand_tokens_per_s: float = Field(gt=0, le=1e15, description="lambda: output tokens per second to serve")
    context_tokens: float = Field(ge=0, le=1e7, description="S_ctx: mean cached tokens of a request")


class DerivedSeries(JanusDerivedProblem):
    """The pools for each interval of a series."""

    task: Literal["series"]
    series: Many[Interval] = ()
    arrivals: Arrivals | None = None
    context_tokens: float | None = Field(
        default=None, ge=0, le=1e7, description="S_ctx: mean cached tokens of a request; null: that of the arrivals"
    )

    @model_validator(mode="before")
    @classmethod
    def _not_of_one_demand(cls, document: Json) -> Json:
        refuse_one_demand(document)
        return document

    @model_validator(mode="after")
    def _demand_is_stated(self) -> Self:
        if not self.series and self.arrivals is None:
            raise fault('missing field "series": state it, or "arrivals"', code="missing_field", where="series")
        if self.context_tokens is None and self.arrivals is None:
            message = 'missing field "context_tokens": only arrivals tell it'
            raise fault(message, code="missing_field", where="context_tokens")
        return self
