"""The problem file of HierMoE in explicit costs (page, "Problem file, explicit costs"), validated once at the door."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from planner.attribution import Sources
from planner.json_text import Json
from planner.routing.document import Index, Path, Routing
from planner.routing.faults import wrong_routing, wrong_table
from planner.routing.map_files import MapFormat
from planner.routing.routed import Kept
from planner.validation import Document, Many, fault, refuse_duplicates

MAX_GPUS = 4096
MAX_EXPERTS = 4096
MAX_LAYERS = 1024

Start = Literal["current", "contiguous", "balanced", "together"]
Cautions = dict[Literal["narrow_dtype_slower"], Annotated[str, Field(min_length=1, max_length=400)]] | None
"""What the reader of a plan should know of its prices: warnings by code."""


class Topology(Document):
    """Ranks in nested groups: ``level_groups`` U[0..D-1] counts the groups of each level, U[0] = 1 the whole."""

    gpus: int = Field(ge=1, le=MAX_GPUS)
    level_groups: Many[int] = (1,)
    expert_memory_bytes_per_gpu: int | None = Field(default=None, ge=0, le=2**60)

    @model_validator(mode="after")
    def _levels_nest(self) -> Self:
        U = self.level_groups
        if not U or U[0] != 1:
            raise _not_nested("expected level_groups to start with 1, the whole")
        if len(U) > 16:
            raise _not_nested(f"expected at most 16 levels, got {len(U)}")
        if any(high <= low or high % low for low, high in pairwise(U)):
            raise _not_nested(f"expected each level to cut every group of the one before evenly, got {list(U)}")
        if len(U) > 1 and (self.gpus % U[-1] or U[-1] >= self.gpus):
            raise _not_nested(
                f"expected the last level to have fewer groups than, and to divide, {self.gpus} GPUs, got {U[-1]}"
            )
        return self

    @property
    def dimensions(self) -> int:
        """D: how many levels an exchange may use."""
        return len(self.level_groups)


def _not_nested(message: str) -> ValueError:
    return fault(message, code="levels_not_nested", where="level_groups")


class LinkCost(Document):
    """t = latency + bytes / bandwidth of one padded all-to-all; ``sources`` say where the two come from."""

    latency_s: float = Field(ge=0, le=1e6)
    bandwidth_bytes_per_s: float = Field(ge=1e-6, le=1e18)
    sources: Sources | None = None


class Links(Document):
    """One cost a collective: the flat one over all ranks, Inter-i and Intra-i for i = 1..D-1."""

    flat: LinkCost
    inter: Many[LinkCost] = ()
    intra: Many[LinkCost] = ()


class Costs(Document):
    """Explicit costs. ``expert_bytes`` is what moving one expert (all its weights of one layer) takes."""

    kind: Literal["explicit"] = "explicit"
    token_bytes: float = Field(gt=0, le=1e12)
    compute_s_per_assignment: float = Field(default=0.0, ge=0, le=1e6)
    compute_sources: Sources | None = Field(default=None, description="of compute_s_per_assignment")
    compute_cautions: Cautions = Field(default=None, description="of compute_s_per_assignment: warnings by code")
    expert_bytes: float | None = Field(default=None, ge=0, le=1e15)
    links: Links


class Objective(Document):
    """mu_a2a (1: dispatch; 2: and combine; 4: a training step) and mu_comp (1; 3: training) of equation 5."""

    a2a_multiplier: float = Field(default=1.0, ge=0, le=1e6)
    compute_multiplier: float = Field(default=1.0, ge=0, le=1e6)


class Search(Document):
    """Budgets and limits of the placement search; null where nothing limits."""

    max_swaps: int | None = Field(default=None, ge=0, le=10_000_000, description="null: 4 E")
    min_relative_gain: float = Field(default=0.0, ge=0, le=1)
    gamma: float = Field(default=10.0, ge=1, le=1000)
    dimensions: Many[Annotated[int, Field(ge=1, le=16)]] | None = Field(default=None, description="allowed d")
    starts: Many[Start] = Field(
        default=("current", "contiguous", "balanced", "together"),
        description="of walks without replicas; placements of the published rules are compared all the same",
    )
    exact: Literal["auto", "never", "always"] = "auto"
    max_moved_experts: int | None = Field(
        default=None, ge=0, le=2**40, description="experts that come to another rank, all layers"
    )
    max_moved_bytes: float | None = Field(default=None, ge=0, le=1e18)
    max_load_ratio: float | None = Field(default=None, ge=1, le=1e6, description="max over mean load of a rank")
    eplb_groups: int | None = Field(default=None, ge=1, le=MAX_EXPERTS, description="of EPLB; null: one a node")


class Layer(Document):
    """One MoE layer: its routing and the placement it has now (null: experts in order, then from the first again)."""

    layer_id: int = Field(ge=0, le=1_000_000, description="as the runtime numbers layers")
    routing: Routing
    initial_physical_to_logical: Many[Index] | None = None


class InitialMap(Document):
    """A runtime's expert map: the placement that every layer has now, read into the layers.

    ``first_layer`` is the layer_id of the file's layer 0: 0 where a file counts dense layers as well, as SGLang's do.
    """

    path: Path
    format: MapFormat
    first_layer: int = Field(default=0, ge=0, le=1_000_000)


class HiermoeProblem(Document):
    """The explicit-cost form. Arrays of token-level routing files are held beside it, by digest."""

    paper: Literal["hiermoe"] = "hiermoe"
    format_version: str = "1.0"
    topology: Topology
    num_experts: int = Field(ge=1, le=MAX_EXPERTS)
    top_k: int = Field(ge=1, le=MAX_EXPERTS)
    redundant_slots: int = Field(default=0, ge=0, le=2**24)
    costs: Costs
    objective: Objective = Objective()
    layers: Many[Layer]
    initial_map: InitialMap | None = None
    search: Search = Search()
    forbid_same_rank_replicas: bool = True
    notes: Json = None
    _kept: Kept = PrivateAttr(default_factory=Kept)

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if self.top_k > self.num_experts:
            raise fault(f"expected top_k <= num_experts = {self.num_experts}, got {self.top_k}", where="top_k")
        self._refuse_uneven_slots()
        self._refuse_links()
        self._refuse_bytes_of_unknown_size()
        self._refuse_search()
        if not 1 <= len(self.layers) <= MAX_LAYERS:
            raise fault(f"expected 1 to {MAX_LAYERS} layers, got {len(self.layers)}", where="layers")
        refuse_duplicates([layer.layer_id for layer in self.layers], "layer_id", "layers")
        for index, layer in enumerate(self.layers):
            self._refuse_layer(layer, f"layers.{index}")
        return self

    def sorted(self) -> Self:
        """The canonical order: layers by id, allowed dimensions ascending, starts by name."""
        layers = tuple(sorted(self.layers, key=lambda layer: layer.layer_id))
        changes: dict[str, object] = {"starts": tuple(sorted(self.search.starts))}
        if self.search.dimensions is not None:
            changes["dimensions"] = tuple(sorted(self.search.dimensions))
        return self.model_copy(update={"layers": layers, "search": self.search.model_copy(update=changes)})

    @property
    def slots(self) -> int:
        """P: physical slots of all ranks."""
        return self.num_experts + self.redundant_slots

    @property
    def allowed_dimensions(self) -> tuple[int, ...]:
        """The d that may be chosen, ascending."""
        allowed = self.search.dimensions
        return tuple(range(1, self.topology.dimensions + 1)) if allowed is None else tuple(sorted(allowed))

    @property
    def kept(self) -> Kept:
        """The arrays held beside this document."""
        return self._kept

    def _refuse_uneven_slots(self) -> None:
        G, P = self.topology.gpus, self.slots
        if P % G:
            more = self.redundant_slots + G - P % G
            raise fault(
                f"expected slots that fill {G} GPUs evenly, got {self.num_experts} experts + {self.redundant_slots} "
                f"redundant slots = {P}, {P % G} left over; redundant_slots={more} fills them",
                code="experts_not_divisible",
                where="redundant_slots",
            )

    def _refuse_links(self) -> None:
        needed = self.topology.dimensions - 1
        plural = "" if needed == 1 else "s"
        for name, links in (("inter", self.costs.links.inter), ("intra", self.costs.links.intra)):
            if len(links) != needed:
                raise fault(
                    f"expected {needed} {name} link{plural}, one a level after the first of "
                    f"{self.topology.dimensions}, got {len(links)}",
                    code="link_count_mismatch",
                    where=f"costs.links.{name}",
                )

    def _refuse_bytes_of_unknown_size(self) -> None:
        limits = {
            "search.max_moved_bytes": self.search.max_moved_bytes,
            "topology.expert_memory_bytes_per_gpu": self.topology.expert_memory_bytes_per_gpu,
        }
        stated = [name for name, limit in limits.items() if limit is not None]
        if stated and self.costs.expert_bytes is None:
            message = f"expected the bytes of one expert, needed by {' and '.join(stated)}"
            raise fault(message, code="missing_field", where="costs.expert_bytes")

    def _refuse_search(self) -> None:
        search, D = self.search, self.topology.dimensions
        if not search.starts:
            raise fault("expected at least one start, got none", where="search.starts")
        refuse_duplicates(search.starts, "start", "search.starts")
        if search.dimensions is None:
            return
        if not search.dimensions:
            raise fault("expected at least one dimension, got none", where="search.dimensions")
        refuse_duplicates(search.dimensions, "dimension", "search.dimensions")
        if max(search.dimensions) > D:
            message = f"expected dimensions of 1 to {D}, the levels, got {max(search.dimensions)}"
            raise fault(message, where="search.dimensions")

    def _refuse_layer(self, layer: Layer, place: str) -> None:
        G, E, K = self.topology.gpus, self.num_experts, self.top_k
        wrong = wrong_routing(layer.routing, G, E, K)
        if wrong is not None:
            raise fault(wrong.message, code=wrong.code, where=f"{place}.routing.{wrong.where}")
        table = layer.initial_physical_to_logical
        if table is None:
            return
        if self.initial_map is not None:
            raise fault("a layer's own placement and initial_map exclude each other", where="initial_map")
        wrong = wrong_table(table, G, E, self.slots, self.forbid_same_rank_replicas)
        if wrong is not None:
            below = f".{wrong.where}" if wrong.where else ""
            raise fault(wrong.message, code=wrong.code, where=f"{place}.initial_physical_to_logical{below}")
