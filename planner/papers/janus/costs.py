"""Seconds and bytes of a problem (page, "Model"): attention, experts, the way between them, memory, prices."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, model_validator

from planner.attribution import Causes, Sources
from planner.routing.document import Digest
from planner.validation import Document, Many, fault

Seconds = Annotated[float, Field(ge=0, le=1e9)]
Bytes = Annotated[float, Field(ge=0, le=1e24)] | Causes
"""A number of bytes, or bytes by cause."""
Statistic = Literal["mean", "p95"]
Batch = Annotated[int, Field(ge=1, le=2**31)]

MAX_GRID = 10_000
"""Points of a batch grid."""
MAX_ROWS = 4096
"""Rows of a table."""


Caution = Literal["narrow_dtype_slower", "cache_rows_stand_in", "poor_fit", "left_out"]
Cautions = Annotated[
    dict[Caution, Annotated[str, Field(min_length=1, max_length=400)]] | None,
    Field(description="what the reader of a plan should know of these seconds: warnings by code"),
]


Combine = Literal["larger", "sum"]


class PricedAttention(Document):
    """What attention was priced at before equation 2 was fitted to it, for the reader: seconds of one layer."""

    context_tokens: float = Field(ge=0, le=1e12)
    requests: Many[Annotated[float, Field(gt=0, le=1e9)]] = Field(description="of one instance, ascending")
    times_s: Many[Annotated[float, Field(gt=0, le=1e9)]] = Field(description="one for each number of requests")

    @model_validator(mode="after")
    def _is_a_curve(self) -> Self:
        if not 1 <= len(self.requests) <= MAX_GRID or any(low >= high for low, high in pairwise(self.requests)):
            raise fault(f"expected 1 to {MAX_GRID:,} numbers of requests, ascending", where="requests")
        if len(self.times_s) != len(self.requests):
            raise fault(f"expected one time for each of {len(self.requests)} requests", where="times_s")
        return self


class Attention(Document):
    """c_a, alpha and c_kv of one layer on one attention instance: max(floor, requests (alpha + context c_kv)) (2), or
    their sum, which is what devices take."""

    floor_s: Seconds = Field(description="c_a: the weights are read whatever the batch")
    per_request_s: Seconds = Field(description="alpha: a request of the instance's batch")
    per_cached_token_s: Seconds = Field(description="c_kv: a cached token of a request")
    combine: Combine = Field(default="larger", description="the larger of floor and requests, as the paper, or the sum")
    sources: Sources | None = None
    cautions: Cautions = None
    priced: PricedAttention | None = None


class Experts(Document):
    """beta and c_e of one layer on the busiest expert instance (3)."""

    per_expert_s: Seconds = Field(description="beta: an activated expert, whose weights are read")
    base_s: Seconds = Field(description="c_e: the rest")
    sources: Sources | None = None
    cautions: Cautions = None
    holds_to_batch: float | None = Field(
        default=None, gt=0, le=1e15, description="requests in flight above which experts cost more; null: not known"
    )


class Way(Document):
    """alpha + beta x bytes of one step of the exchange."""

    alpha_s: Seconds = Field(description="whatever is sent")
    beta_s_per_byte: float = Field(ge=0, le=1e6, description="of the bytes of a node's requests, V")


class TwoPhase(Document):
    """Direct, or one-to-one and then multicast inside the node, whichever is faster (4)."""

    kind: Literal["two_phase"] = "two_phase"
    gpus_per_node: int = Field(ge=1, le=4096)
    links_per_node: int = Field(
        default=1,
        ge=1,
        le=4096,
        description="links between nodes that a node may use at once, one an instance at either end; network's beta "
        "is of one of them",
    )
    bytes_per_request: float = Field(gt=0, le=1e12, description="hidden size x bytes of an element")
    gather: Way = Field(description="instances of a node to one of them")
    network: Way = Field(description="from a node to another, over one link")
    multicast: Way = Field(description="inside the destination node")
    reduce: Way = Field(description="results inside the node of the experts")
    priced_ranks: int | None = Field(
        default=None, ge=1, description="filled in: ranks of the cluster that it was priced in; null: as stated"
    )
    sources: Sources | None = None


class Constant(Document):
    """One time whatever is sent."""

    kind: Literal["constant"] = "constant"
    time_s: Seconds
    sources: Sources | None = None


Exchange = Annotated[TwoPhase | Constant, Discriminator("kind")]


def refuse_no_grid(grid: tuple[int, ...]) -> None:
    """Refuse a batch grid that does not rise from 1."""
    if not 2 <= len(grid) <= MAX_GRID:
        raise fault(f"expected 2 to {MAX_GRID:,} points, got {len(grid)}", where="batch_grid")
    if grid[0] != 1:
        raise fault(f"expected a grid from 1, got {grid[0]}", where="batch_grid.0")
    for place, (low, high) in enumerate(pairwise(grid), start=1):
        if high <= low:
            raise fault(f"expected more than the point before, {low}, got {high}", where=f"batch_grid.{place}")


class _Gridded(Document):
    batch_grid: Many[Batch] = Field(description="requests in flight, from 1, ascending; the last is the largest batch")

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        refuse_no_grid(self.batch_grid)
        return self


def refuse_unordered(sizes: tuple[int, ...], where: str) -> None:
    """Refuse pool sizes that are none, too many or not ascending."""
    if not 1 <= len(sizes) <= MAX_ROWS:
        raise fault(f"expected 1 to {MAX_ROWS:,} numbers of instances, got {len(sizes)}", where=where)
    for place, (low, high) in enumerate(pairwise(sizes), start=1):
        if high <= low:
            raise fault(f"expected more than the number before, {low}, got {high}", where=f"{where}.{place}")


class ActivatedTable(_Gridded):
    """Experts activated on the busiest instance: a row a number of expert instances, a column a batch.

    Between batches values are linear; a row holds up to the next listed number of instances.
    """

    kind: Literal["table"] = "table"
    expert_instances: Many[Annotated[int, Field(ge=1, le=2**20)]]
    values: Many[Many[Annotated[float, Field(ge=0, le=2**20)]]]
    statistic: Statistic | None = Field(default=None, description="of the windows; null: stated by who wrote it")
    windows: Many[Annotated[int, Field(ge=0)]] | None = Field(
        default=None, description="windows of the trace behind each batch, all traced layers together"
    )
    sources: Sources | None = None
    layers_sha256: Digest | None = Field(
        default=None,
        description="filled in: of the traced layers that it was read off, with E, K and C, and of a usual grid with "
        "how far demand and SLO ask for it; beside others it is read again. null: as stated",
    )
    usual_grid: Literal[True] | None = Field(
        default=None, description="filled in: nobody stated the grid, so that it follows demand and SLO"
    )

    @model_validator(mode="after")
    def _rows_rise(self) -> Self:
        refuse_unordered(self.expert_instances, "expert_instances")
        if len(self.values) != len(self.expert_instances):
            raise fault(
                f"expected a row for each of {len(self.expert_instances)} expert_instances, got {len(self.values)}",
                where="values",
            )
        for row, values in enumerate(self.values):
            if len(values) != len(self.batch_grid):
                message = f"expected a value for each of {len(self.batch_grid)} batches, got {len(values)}"
                raise fault(message, where=f"values.{row}")
            for column, (low, high) in enumerate(pairwise(values), start=1):
                if high < low:
                    raise fault(
                        f"expected a row that does not fall with the batch: row {row} "
                        f"({self.expert_instances[row]} expert instances), column {column} "
                        f"(batch {self.batch_grid[column]}) has {high}, after {low}",
                        where=f"values.{row}.{column}",
                    )
        if self.windows is not None and len(self.windows) != len(self.batch_grid):
            raise fault(f"expected one number for each of {len(self.batch_grid)} batches", where="windows")
        return self


class ActivatedBound(_Gridded):
    """The closed forms: ``binomial_bound`` and ``balanced_bound`` (ours: one replica of each activated expert, shared
    evenly; the first knows that less is left to chance once most experts are active, and that no instance needs more
    than its even share of all experts), or the paper's ``printed_bound``, which counts every replica."""

    kind: Literal["binomial_bound", "balanced_bound", "printed_bound"]


class ActivatedByRouting(Document):
    """Read off the routing of the problem's ``layers`` into a table: windows of B tokens, each balanced by AEBS."""

    kind: Literal["routing"] = "routing"
    batch_grid: Many[Batch] | None = Field(
        default=None, description="as of a table; null: powers of two as far as demand and traces reach"
    )
    expert_instances: Many[Annotated[int, Field(ge=1, le=2**20)]] | None = Field(
        default=None, description="rows to make; null: up to 16 from the fewest that hold all experts"
    )
    statistic: Statistic = "mean"

    @model_validator(mode="after")
    def _both_rise(self) -> Self:
        if self.batch_grid is not None:
            refuse_no_grid(self.batch_grid)
        if self.expert_instances is not None:
            refuse_unordered(self.expert_instances, "expert_instances")
        return self


Activated = Annotated[ActivatedTable | ActivatedBound | ActivatedByRouting, Discriminator("kind")]


class Memory(Document):
    """What fills an instance of each side (6); of experts their slots alone count where no bytes are stated."""

    capacity_bytes: float = Field(gt=0, le=1e18, description="of an attention instance")
    attention_fixed_bytes: Bytes = Field(description="W_a: weights and reserve")
    kv_bytes_per_token: float = Field(ge=0, le=1e15, description="of a cached token over all layers")
    activation_bytes_per_request: float = Field(default=0.0, ge=0, le=1e15)
    expert_bytes_per_slot: float | None = Field(
        default=None, ge=0, le=1e18, description="one expert over all layers; null: slots are taken to fit"
    )
    expert_fixed_bytes: Bytes | None = Field(
        default=None, description="of an expert instance beside its slots: the reserve; null: nothing"
    )
    expert_capacity_bytes: float | None = Field(
        default=None, gt=0, le=1e18, description="of an expert instance; null: capacity_bytes"
    )

    @model_validator(mode="after")
    def _bytes_of_a_slot(self) -> Self:
        stated = [name for name in ("expert_fixed_bytes", "expert_capacity_bytes") if getattr(self, name) is not None]
        if stated and self.expert_bytes_per_slot is None:
            message = f"{stated[0]} says nothing without the bytes of a slot"
            raise fault(message, code="missing_field", where="expert_bytes_per_slot")
        return self


class Limits(Document):
    """GPUs that may be used."""

    max_attention_instances: int = Field(ge=1, le=65536)
    max_expert_instances: int = Field(ge=1, le=65536)
    max_total_instances: int = Field(ge=1, le=131072)


class Prices(Document):
    """What an instance of each side costs for an hour, in a unit of the user's."""

    attention_per_hour: float = Field(gt=0, le=1e9)
    expert_per_hour: float = Field(gt=0, le=1e9)
