"""The fields of every ``derive`` object that say whose prices are meant: a profile, a cluster, what to extrapolate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from planner.derivation.nodes import check_nodes
from planner.derivation.references import is_file
from planner.paper import DeriveOptions
from planner.validation import Document, fault, shown_value
from profiles.clusters.document import LEAST_BYTES_PER_S, ClusterDocument


class InterNode(Document):
    """What crossing nodes costs: a bandwidth (a GPU and direction) and a latency (a step), or a log to fit them to."""

    bandwidth_bytes_per_s: float | None = Field(
        default=None, ge=LEAST_BYTES_PER_S, le=1e13, description="of one GPU, one direction: 400 Gb/s are 50e9"
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
    """Ranks in nodes of equal size; ``inter_node`` is needed as soon as something leaves a node."""

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


class Hardware(Document):
    """The hardware of a ``derive`` object; a paper adds its model, dtypes and what it decides about."""

    profile: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="a built-in profile's name, or a file's path; null: the one that the cluster names",
    )
    extrapolate: Literal["refuse", "roofline"] = "refuse"
    cluster: AnyCluster = Field(
        description="ranks and nodes; or a preset's name, a cluster file's path, or the fields of such a file"
    )

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

    def overridden(self, options: DeriveOptions) -> Self:
        """With the command line's profile and extrapolation; a file named there is relative to the working folder."""
        changes: dict[str, object] = {}
        if options.profile is not None:
            changes["profile"] = str(Path(options.profile).resolve()) if is_file(options.profile) else options.profile
        if options.extrapolate is not None:
            changes["extrapolate"] = options.extrapolate
        return self.model_copy(update=changes)
