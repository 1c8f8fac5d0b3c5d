"""The sizing tasks: seconds of a layer, limits, devices, traced layers, baselines; and the pools for one demand."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from planner.papers.janus.costs import (
    Activated,
    ActivatedByRouting,
    ActivatedTable,
    Attention,
    Exchange,
    Experts,
    Limits,
    Memory,
    Prices,
)
from planner.papers.janus.tasks.shared import MAX_EXPERTS, JanusProblem, refuse_routing
from planner.routing.document import (
    Routing,
)
from planner.routing.routed import Kept
from planner.validation import Document, Identity, Many, fault, refuse_duplicates, shown_value

MAX_LAYERS = 1024

Rules = Literal["none", "vllm_afd"]


class Layer(Document):
    """A traced MoE layer: its tokens in the order they came, from which copies, placement and a_max are made."""

    layer_id: int = Field(ge=0, le=1_000_000, description="as the runtime numbers layers")
    routing: Routing


class Device(Document):
    """A pair of devices that may carry the two sides; null: as the problem's own."""

    id: Identity
    prices: Prices | None = None
    attention: Attention | None = None
    moe: Experts | None = None
    comm: Exchange | None = None
    a_max: Activated | None = None
    memory: Memory | None = None
    slots_per_instance: int | None = Field(default=None, ge=1, le=MAX_EXPERTS)
    limits: Limits | None = None


class Monolithic(Document):
    """The baseline of one pool, expert-parallel over all its GPUs, at this time of the exchange."""

    allowed_gpus: Many[Annotated[int, Field(ge=1, le=65536)]]
    comm_s: float = Field(ge=0, le=1e9)
    expert_bytes: float = Field(ge=0, le=1e18, description="one expert over all layers")

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.allowed_gpus:
            raise fault("expected at least one number of GPUs, got none", where="allowed_gpus")
        refuse_duplicates(self.allowed_gpus, "number of GPUs", "allowed_gpus")
        return self


class FixedRatio(Document):
    """The baseline of one ratio of attention to experts; null: it is left out."""

    fixed_ratio: Many[Annotated[int, Field(ge=1, le=65536)]] | None = Field(
        default=None, description="[attention, experts]: only pools of this ratio"
    )

    @model_validator(mode="after")
    def _two(self) -> Self:
        if self.fixed_ratio is not None and len(self.fixed_ratio) != 2:
            raise fault(f"expected [attention, experts], got {len(self.fixed_ratio)} numbers", where="fixed_ratio")
        return self


class Baselines(FixedRatio):
    """What some baselines need to be told; null: that one is left out."""

    monolithic: Monolithic | None = None


class SizingProblem(JanusProblem):
    """What the sizing tasks have: seconds of a layer, limits, and what else the plan is to say."""

    num_layers: int = Field(ge=1, le=10_000, description="L: MoE layers, all alike")
    top_k: int = Field(ge=1, le=MAX_EXPERTS, description="K: experts that each token goes to")
    slo_tpot_s: float = Field(gt=0, le=1e9, description="most seconds of an output token")
    context_tokens: float = Field(ge=0, le=1e12, description="S_ctx: mean cached tokens of a request")
    attention: Attention
    moe: Experts
    comm: Exchange
    a_max: Activated
    memory: Memory | None = Field(default=None, description="null: unlimited")
    limits: Limits
    launcher_rules: Rules = Field(
        default="none", description="vllm_afd: attention instances are a multiple of expert instances"
    )
    prices: Prices | None = Field(default=None, description="given: the price is the objective in place of GPUs")
    price_unit: str = Field(default="USD", min_length=1, max_length=20)
    devices: Many[Device] = Field(default=(), description="pairs of devices to choose from; none: the problem's own")
    layers: Many[Layer] = Field(default=(), description="traced layers, for copies and placement of their experts")
    baselines: Baselines = Baselines()
    _kept: Kept = PrivateAttr(default_factory=Kept)

    @property
    def kept(self) -> Kept:
        """The arrays held beside this document."""
        return self._kept

    def sorted(self) -> Self:
        """The canonical order: layers by id, devices by id, the baseline's GPUs ascending."""
        changes: dict[str, object] = {
            "layers": tuple(sorted(self.layers, key=lambda layer: layer.layer_id)),
            "devices": tuple(sorted(self.devices, key=lambda device: device.id)),
        }
        if (one_pool := self.baselines.monolithic) is not None:
            pools = {"allowed_gpus": tuple(sorted(one_pool.allowed_gpus))}
            changes["baselines"] = self.baselines.model_copy(update={"monolithic": one_pool.model_copy(update=pools)})
        return self.model_copy(update=changes)

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if self.top_k > self.num_experts:
            raise fault(f"expected top_k <= num_experts = {self.num_experts}, got {self.top_k}", where="top_k")
        refuse_duplicates([device.id for device in self.devices], "device", "devices")
        if len(self.layers) > MAX_LAYERS:
            raise fault(f"expected at most {MAX_LAYERS} layers, got {len(self.layers)}", where="layers")
        refuse_duplicates([layer.layer_id for layer in self.layers], "layer_id", "layers")
        for index, layer in enumerate(self.layers):
            refuse_routing(layer.routing, self.num_experts, self.top_k, f"layers.{index}.routing")
        self._refuse_late_rows()
        self._refuse_untraced()
        self._refuse_unpriced()
        return self

    def _refuse_late_rows(self) -> None:
        """A table must say something of the fewest instances that hold all experts."""
        for place, C, a_max, device in self._tables():
            fewest = -(-self.num_experts // C)
            if a_max.expert_instances[0] > fewest:
                of = "" if device is None else f" of device {shown_value(device)}"
                raise fault(
                    f"expected a first row at or below the fewest instances that hold {self.num_experts} experts in "
                    f"{C} slots each{of}, {fewest}, got {a_max.expert_instances[0]}",
                    where=f"{place}.expert_instances.0",
                )

    def _tables(self) -> list[tuple[str, int, ActivatedTable, str | None]]:
        """Tables with their places, the slots they hold for, and the device where slots are its own."""
        found: list[tuple[str, int, Activated, str | None]] = []
        if not self.devices:
            found.append(("a_max", self.slots_per_instance, self.a_max, None))
        for device in self.devices:
            place = "a_max" if device.a_max is None else f"devices.{device.id}.a_max"
            own = None if device.slots_per_instance is None else device.id
            C = device.slots_per_instance or self.slots_per_instance
            found.append((place, C, device.a_max or self.a_max, own))
        return [(place, C, a_max, own) for place, C, a_max, own in found if isinstance(a_max, ActivatedTable)]

    def _refuse_untraced(self) -> None:
        places = [("a_max", self.a_max), *((f"devices.{device.id}.a_max", device.a_max) for device in self.devices)]
        for place, a_max in places:
            if isinstance(a_max, ActivatedByRouting) and not self.layers:
                message = 'kind "routing" reads the problem\'s layers: missing field "layers"'
                raise fault(message, code="missing_field", where=place)

    def _refuse_unpriced(self) -> None:
        """Either all that may be chosen has a price, or nothing has."""
        if self.prices is not None or not any(device.prices for device in self.devices):
            return
        for device in self.devices:
            if device.prices is None:
                message = f"device {device.id} has no prices while others have: state them, or those of the problem"
                raise fault(message, code="missing_field", where=f"devices.{device.id}.prices")


class ScalingProblem(SizingProblem):
    """The pools for one demand."""

    task: Literal["scaling"]
    demand_tokens_per_s: float = Field(gt=0, le=1e15, description="lambda: output tokens per second to serve")
