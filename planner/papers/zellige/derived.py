"""The derived-cost form of the problem file: a profile, a model, a cluster and a batch instead of prices.

``cost.py`` turns it into the explicit form. Field names are the contract's; every bound is here.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from planner.json_text import Json
from planner.papers.zellige.batch import Record
from planner.papers.zellige.problem import Config, RankSets, Search, check_configs, check_nodes
from planner.papers.zellige.recipe import Recipe
from planner.validation import Document, Identity, Many, fault, shown_value
from profiles.clusters.document import ClusterDocument
from profiles.geometry import GeometrySpec


class InterNode(Document):
    """What crossing nodes costs: a bandwidth (a GPU and direction) and a latency (a step), or a log to fit them to."""

    bandwidth_bytes_per_s: float | None = Field(
        default=None, ge=1e7, le=1e13, description="of one GPU, one direction: 400 Gb/s are 50e9"
    )
    latency_s: float | None = Field(default=None, ge=0, le=0.1)
    log: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="nccl-tests output (PATH, or OPERATION=PATH if it does not say), or a profile of one (.json)",
    )

    @model_validator(mode="after")
    def _stated_or_logged(self) -> Self:
        stated = (self.bandwidth_bytes_per_s is not None, self.latency_s is not None)
        if stated not in ((True, True), (False, False)) or (self.log is None) != all(stated):
            raise fault('expected "bandwidth_bytes_per_s" with "latency_s", or "log" alone')
        return self


class DerivedCluster(Document):
    """Ranks in nodes of equal size; ``inter_node`` is needed as soon as a configuration is wider than a node."""

    num_ranks: int = Field(ge=1, le=65536)
    gpus_per_node: int = Field(ge=1, le=65536)
    inter_node: InterNode | None = None

    @model_validator(mode="after")
    def _nodes_are_full(self) -> Self:
        check_nodes(self.num_ranks, self.gpus_per_node)
        return self


class TieredCluster(ClusterDocument):
    """A cluster in the fields of a cluster file, most often a preset with its nodes and what the preset leaves open."""

    inter_node: InterNode | None = Field(default=None, description="in place of what the tiers above the node say")


def _form(value: object) -> str:
    if isinstance(value, str):
        return "name"
    tiered = isinstance(value, TieredCluster) or (
        isinstance(value, dict) and bool({"preset", "tiers", "device_classes", "nodes"} & value.keys())
    )
    return TieredCluster.__name__ if tiered else DerivedCluster.__name__


ClusterName = Annotated[str, Field(min_length=1, max_length=1000)]


def _refuse_other(value: object) -> object:
    if isinstance(value, str | dict | Document | ClusterDocument):
        return value
    raise fault(f"expected a cluster's name, a file or an object, got {shown_value(value)}", code="wrong_type")


AnyCluster = Annotated[
    Annotated[DerivedCluster, Tag(DerivedCluster.__name__)]
    | Annotated[TieredCluster, Tag(TieredCluster.__name__)]
    | Annotated[ClusterName, Tag("name")],
    Discriminator(_form),
    BeforeValidator(_refuse_other),
]


class MemoryBudget(Document):
    """What a rank's memory holds beside the step: M_cap = capacity - reserve - sharded model states."""

    capacity_bytes: float | None = Field(
        default=None, gt=0, le=1e18, description="null: the device memory of the cluster, else of the profile"
    )
    reserve_bytes: float = Field(
        default=4e9, ge=0, le=1e18, description="context, communication buffers, workspace, fragmentation"
    )
    state_bytes_per_parameter: float = Field(
        default=18.0, ge=0, le=1000, description="weights 2, gradients 4, fp32 copy and Adam moments 12"
    )
    shard_ranks: int | None = Field(default=None, ge=1, le=65536, description="null: all ranks (ZeRO-3, FSDP)")


class DerivedBatch(Document):
    """The sequences of the step: written here, in a JSONL file of records, or drawn by a recipe."""

    records: Many[Record] | None = None
    jsonl: str | None = Field(default=None, min_length=1, max_length=1000, description="relative to the problem file")
    recipe: Recipe | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [n for n in ("records", "jsonl", "recipe") if getattr(self, n) is not None]
        if len(given) != 1:
            shown = " and ".join(given) or "none"
            raise fault(f'expected exactly one of "records", "jsonl" and "recipe", got {shown}')
        if self.records is not None and not self.records:
            raise fault("an empty batch has no makespan: expected at least one record, got none", where="records")
        return self


class MeasuredPrice(Document):
    """A measured time of one length in one configuration; replaces the derived one (page equation 21)."""

    tokens: int = Field(ge=1, le=2**40)
    config: Identity
    time_s: float = Field(gt=0, le=1e6)


class Derive(Document):
    """Where the prices come from."""

    profile: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="a built-in profile's name, or a file's path; null: the one that the cluster names",
    )
    model: str | GeometrySpec = Field(description="a built-in geometry's name, a config.json, or its sizes")
    dtype: Literal["bf16", "fp16", "fp32", "tf32"] = "bf16"
    extrapolate: Literal["refuse", "roofline"] = "refuse"
    cluster: AnyCluster = Field(
        description="ranks and nodes; or a preset's name, a cluster file's path, or the fields of such a file"
    )
    batch: DerivedBatch
    checkpointing: Literal["full", "none"] = "full"
    overlap: float = Field(
        default=0.0, ge=0, le=1, description="share of all-gather and all-to-all time hidden behind compute"
    )
    launch_s: float = Field(default=0.0, ge=0, le=10, description="host time a sequence adds to each of its ranks")
    memory: MemoryBudget = MemoryBudget()
    measured: Many[MeasuredPrice] = ()

    @model_validator(mode="after")
    def _shards_are_ranks(self) -> Self:
        shards = self.memory.shard_ranks
        if shards is not None and self.placed and shards > self.ranks.num_ranks:
            place = "memory.shard_ranks"
            raise fault(f"expected shard_ranks <= num_ranks = {self.ranks.num_ranks}, got {shards}", where=place)
        return self

    @property
    def placed(self) -> bool:
        """Whether the cluster's ranks and nodes are known: written out, or looked up already."""
        return isinstance(self.cluster, DerivedCluster)

    @property
    def ranks(self) -> DerivedCluster:
        """The ranks and nodes of a placed problem (see ``clusters.placed``)."""
        if not isinstance(self.cluster, DerivedCluster):
            raise TypeError("the cluster was not looked up yet")
        return self.cluster


class ZelligeDerivedProblem(Document):
    """The derived-cost form."""

    paper: Literal["zellige"] = "zellige"
    format_version: str = "1.0"
    derive: Derive
    rank_sets: RankSets = RankSets()
    configs: Many[Config] | None = Field(
        default=None,
        description="null: whole; q, h, k, and heads in a ring, in powers of two up to min(ranks, 64)",
    )
    search: Search = Search()
    notes: Json = None

    @model_validator(mode="after")
    def _configs_fit(self) -> Self:
        if self.configs is not None and self.derive.placed:
            check_configs(self.configs, self.derive.ranks.num_ranks)
        return self
