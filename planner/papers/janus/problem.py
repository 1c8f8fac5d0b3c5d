"""The problem file of Janus in explicit costs (page, "Problem file"), validated once at the door.

Three tasks, each a form of its own: the pools for one demand, for a series of demands, or the placement of one layer.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from planner.json_text import Json
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
from planner.routing.document import (
    Digest,
    FileRouting,
    MaskRouting,
    Path,
    Routing,
    UniformRouting,
    ZipfRouting,
)
from planner.routing.faults import wrong_routing
from planner.routing.routed import Kept
from planner.validation import Document, Forms, Identity, Many, fault, refuse_duplicates

MAX_EXPERTS = 4096
MAX_LAYERS = 1024
MAX_INTERVALS = 100_000

Rules = Literal["none", "vllm_afd"]
Load = Annotated[float, Field(ge=0, le=1e15)]
Expert = Annotated[int, Field(ge=0, lt=MAX_EXPERTS)]
Pair = tuple[Expert, Expert, Load]
"""[i, j, w]: experts i < j were activated together w times."""


def _refuse_routing(routing: Routing, experts: int, top_k: int, place: str) -> None:
    """Refuse what the document tells of a routing; where a token came from does not matter here."""
    if isinstance(routing, UniformRouting):
        routing = ZipfRouting(tokens_per_rank=routing.tokens_per_rank, exponent=0.0, seed=0)
    anywhere = max(routing.source_rank, default=0) + 1 if isinstance(routing, MaskRouting) else 1
    wrong = wrong_routing(routing, anywhere, experts, top_k)
    if wrong is not None:
        raise fault(wrong.message, code=wrong.code, where=f"{place}.{wrong.where}")


class JanusProblem(Forms):
    """What all tasks have; each is a form of its own."""

    told_by: ClassVar[str] = "task"

    paper: Literal["janus"] = "janus"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    num_experts: int = Field(ge=1, le=MAX_EXPERTS, description="E: routed experts of a layer")
    slots_per_instance: int = Field(ge=1, le=MAX_EXPERTS, description="C: expert slots of one expert instance")
    notes: Json = Field(default=None, description="kept, never read")

    def sorted(self) -> Self:
        """The canonical form."""
        return self


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


class Baselines(Document):
    """What some baselines need to be told; null: that one is left out."""

    monolithic: Monolithic | None = None
    fixed_ratio: Many[Annotated[int, Field(ge=1, le=65536)]] | None = Field(
        default=None, description="[attention, experts]: only pools of this ratio"
    )

    @model_validator(mode="after")
    def _two(self) -> Self:
        if self.fixed_ratio is not None and len(self.fixed_ratio) != 2:
            raise fault(f"expected [attention, experts], got {len(self.fixed_ratio)} numbers", where="fixed_ratio")
        return self


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
            _refuse_routing(layer.routing, self.num_experts, self.top_k, f"layers.{index}.routing")
        self._refuse_late_rows()
        self._refuse_untraced()
        self._refuse_unpriced()
        return self

    def _refuse_late_rows(self) -> None:
        """A table must say something of the fewest instances that hold all experts."""
        for place, C, a_max in self._tables():
            fewest = -(-self.num_experts // C)
            if a_max.expert_instances[0] > fewest:
                raise fault(
                    f"expected a first row at or below the fewest instances that hold {self.num_experts} experts in "
                    f"{C} slots each, {fewest}, got {a_max.expert_instances[0]}",
                    where=f"{place}.expert_instances.0",
                )

    def _tables(self) -> list[tuple[str, int, ActivatedTable]]:
        """Tables with their places and the slots they hold for."""
        found = [("a_max", self.slots_per_instance, self.a_max)] if not self.devices else []
        for device in self.devices:
            place = "a_max" if device.a_max is None else f"devices.{device.id}.a_max"
            found.append((place, device.slots_per_instance or self.slots_per_instance, device.a_max or self.a_max))
        return [(place, C, a_max) for place, C, a_max in found if isinstance(a_max, ActivatedTable)]

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


class Interval(Document):
    """A stretch of time and its demand; none: one request at a time."""

    start_s: float = Field(ge=0, le=1e12)
    duration_s: float = Field(gt=0, le=1e12)
    demand_tokens_per_s: float = Field(ge=0, le=1e15)


class Arrivals(Document):
    """Requests with their time and output length, in a file beside the problem: binned into the series.

    Read are Azure and BurstGPT CSV and Mooncake JSON Lines, told apart by their fields. ``tile_to_s`` repeats the
    trace until so much time is covered; ``scale`` multiplies its demand.
    """

    path: Path
    sha256: Digest | None = Field(default=None, description="of the file; filled in, and checked where given")
    interval_s: float = Field(default=900.0, gt=0, le=1e9)
    tile_to_s: float | None = Field(default=None, gt=0, le=1e9, description="null: the trace once")
    scale: float = Field(default=1.0, gt=0, le=1e9)
    requests: int | None = Field(default=None, ge=0, description="filled in: requests of the file")
    mean_context_tokens: float | None = Field(
        default=None, ge=0, description="filled in: input and half of the output, mean over output tokens"
    )


class SeriesProblem(SizingProblem):
    """The pools for each interval of a series: written out, or of arrivals."""

    task: Literal["series"]
    series: Many[Interval] = ()
    arrivals: Arrivals | None = None

    @model_validator(mode="after")
    def _intervals_in_order(self) -> Self:
        if not self.series and self.arrivals is None:
            raise fault('missing field "series": state it, or "arrivals"', code="missing_field", where="series")
        if len(self.series) > MAX_INTERVALS:
            message = f"expected at most {MAX_INTERVALS:,} intervals, got {len(self.series):,}"
            raise fault(message, code="too_large", where="series")
        for index, (one, other) in enumerate(pairwise(self.series), start=1):
            end = one.start_s + one.duration_s
            if other.start_s < end * (1 - 1e-12):
                message = f"expected a start after the interval before, which ends at {end:.9g}, got {other.start_s}"
                raise fault(message, where=f"series.{index}.start_s")
        return self


class PlacementProblem(JanusProblem):
    """Copies and placement of one layer's experts: from its statistics written out, or from its routing.

    ``batches`` are tokens with their experts; each is balanced by AEBS on the placement found.
    """

    task: Literal["placement"]
    expert_instances: int = Field(ge=1, le=4096, description="n_e")
    expert_load: Many[Load] = Field(default=(), description="c(e): tokens of each expert")
    coactivation: Many[Annotated[Pair, Field(strict=False)]] = Field(
        default=(), description="[i, j, w] with i < j, ascending; a pair that is missing has 0"
    )
    routing: Routing | None = Field(default=None, description="read into expert_load and coactivation")
    top_k: int | None = Field(
        default=None, ge=1, le=MAX_EXPERTS, description="K of a routing that does not write its tokens out"
    )
    batches: Many[Many[Many[Expert]]] = ()

    @model_validator(mode="after")
    def _statistics_fit(self) -> Self:
        E = self.num_experts
        if self.routing is None and len(self.expert_load) != E:
            code = "out_of_range" if self.expert_load else "missing_field"
            raise fault(
                f"expected one load for each of the {E} experts, got {len(self.expert_load)}",
                code=code,
                where="expert_load",
            )
        if self.routing is not None and (self.expert_load or self.coactivation):
            raise fault("routing is read into expert_load and coactivation: state one of them", where="routing")
        self._refuse_routing()
        before = (-1, -1)
        for index, (one, other, _) in enumerate(self.coactivation):
            if not one < other < E:
                message = f"expected experts i < j < {E}, got [{one}, {other}]"
                raise fault(message, where=f"coactivation.{index}")
            if (one, other) <= before:
                message = f"expected pairs in ascending order, each once, got [{one}, {other}] after {list(before)}"
                raise fault(message, where=f"coactivation.{index}")
            before = (one, other)
        for index, batch in enumerate(self.batches):
            for token, experts in enumerate(batch):
                if len(set(experts)) != len(experts) or any(expert >= E for expert in experts):
                    message = f"expected distinct experts below {E}, got {list(experts)[:10]}"
                    raise fault(message, where=f"batches.{index}.{token}")
        return self

    def _refuse_routing(self) -> None:
        routing, K = self.routing, self.top_k
        if K is not None and self.num_experts < K:
            raise fault(f"expected top_k <= num_experts = {self.num_experts}, got {K}", where="top_k")
        if isinstance(routing, MaskRouting) and K is None:
            K = len(routing.expert_ids[0]) if routing.expert_ids else 1
        if routing is None or (isinstance(routing, FileRouting) and K is None):
            return
        if K is None:
            message = 'missing field "top_k": how many experts each drawn token goes to'
            raise fault(message, code="missing_field", where="top_k")
        _refuse_routing(routing, self.num_experts, K, "routing")
