"""The derived-cost form of the problem file: a model, a layout and a batch instead of bytes and links.

``cost.py`` turns it into the explicit form. Every bound is here.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.derivation.hardware import AnyCluster
from planner.derivation.moe.dtypes import Multiplied
from planner.json_text import Json
from planner.papers.memory.byte_fields import MAX_DIMS, Bytes, Capacity, Dim, Seconds
from planner.papers.memory.job import Job
from planner.papers.memory.problem import Host, Search
from planner.validation import Document, Many, fault, refuse_duplicates

OF_DIMS = "data-parallel dimensions, innermost first; null: the cluster's, inside nodes and between them"


class Derive(Job):
    """Where the coefficients come from. What is not stated is looked up, and then a cluster must be named."""

    profile: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="a built-in profile's name, or a file's path; null: the one that the cluster names, if any",
    )
    extrapolate: Literal["refuse", "roofline"] = "refuse"
    dtype: Multiplied = Field(default="bf16", description="of products, for the price of recomputation")
    cluster: AnyCluster | None = Field(
        default=None,
        description="ranks and nodes; or a preset's name, a cluster file's path, or the fields of such a file; null "
        "where dense_dims and capacity_bytes are stated",
    )
    dense_dims: Many[Dim] | None = Field(default=None, description=f"of what is no expert: dp and cp ranks. {OF_DIMS}")
    expert_dims: Many[Dim] | None = Field(default=None, description=f"of the experts. {OF_DIMS}")
    recompute_s: Seconds | None = Field(
        default=None,
        description="of one micro-batch, all layers of the rank; null: their forward as the profile prices it, or no "
        "recomputation without one",
    )

    @model_validator(mode="after")
    def _dims_are_there(self) -> Self:
        for name in ("dense_dims", "expert_dims"):
            dims = getattr(self, name)
            if dims is None:
                continue
            if not 1 <= len(dims) <= MAX_DIMS:
                raise fault(f"expected 1 to {MAX_DIMS} dims, got {len(dims)}", where=name)
            refuse_duplicates([dim.id for dim in dims], "id", name)
        if self.cluster is None and self.dense_dims is None:
            message = 'missing field "cluster": needed where "dense_dims" is not given'
            raise fault(message, code="missing_field", where="cluster")
        if self.dense_dims is None and self.expert_dims is not None:
            message = 'missing field "dense_dims": it goes with expert_dims'
            raise fault(message, code="missing_field", where="dense_dims")
        if self.cluster is None and self.profile is not None:
            message = 'missing field "cluster": it goes with profile'
            raise fault(message, code="missing_field", where="cluster")
        return self


class MemoryDerivedProblem(Document):
    """The derived-cost form."""

    paper: Literal["memory"] = "memory"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    derive: Derive
    capacity_bytes: Capacity | None = Field(
        default=None, description="of the device; null: the cluster's, else the profile's"
    )
    other_bytes: Bytes | None = Field(
        default=None,
        description="context, communicators, workspace, fragmentation: measure yours; null: modelled, by cause, "
        "without fragmentation",
    )
    other_measured: bool = Field(default=False, description="whether other_bytes is from a measured peak")
    host: Host | None = Field(default=None, description="null: nothing is offloaded")
    search: Search = Search()
    notes: Json = Field(default=None, description="kept, never read")

    @model_validator(mode="after")
    def _capacity_is_known(self) -> Self:
        if self.capacity_bytes is None and self.derive.cluster is None:
            message = 'missing field "capacity_bytes": needed where no cluster is named'
            raise fault(message, code="missing_field", where="capacity_bytes")
        if self.other_measured and self.other_bytes is None:
            message = 'missing field "other_bytes": it goes with other_measured'
            raise fault(message, code="missing_field", where="other_bytes")
        return self
