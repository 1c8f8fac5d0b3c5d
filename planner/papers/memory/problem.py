"""The problem file of the memory paper in explicit bytes and seconds (page, section 6), validated once at the door."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.attribution import parts_of
from planner.json_text import Json
from planner.memory.modes import ActivationsMode, GradientsMode, OptimizerMode, ParametersMode
from planner.papers.memory.byte_fields import (
    Activations,
    ByCause,
    Bytes,
    Capacity,
    Given,
    Group,
    PerByte,
    Rank,
)
from planner.papers.memory.job import Job
from planner.validation import Document, Many, fault, refuse_duplicates

State = Literal["parameters", "gradients", "optimizer", "activations"]

PARAMETERS_MODES: tuple[ParametersMode, ...] = ("replicated", "gather", "gather_keep", "offloaded")
GRADIENTS_MODES: tuple[GradientsMode, ...] = ("replicated", "sharded", "offloaded")
OPTIMIZER_MODES: tuple[OptimizerMode, ...] = ("replicated", "sharded", "offloaded")
ACTIVATIONS_MODES: tuple[ActivationsMode, ...] = ("kept", "materialised", "offloaded")
"""Modes in the order of ties (page, section 3.1)."""

STATES: tuple[State, ...] = ("parameters", "gradients", "optimizer", "activations")
MODES: dict[State, tuple[str, ...]] = {
    "parameters": PARAMETERS_MODES,
    "gradients": GRADIENTS_MODES,
    "optimizer": OPTIMIZER_MODES,
    "activations": ACTIVATIONS_MODES,
}

Caution = Literal[
    "job_dropped",
    "layers_averaged",
    "left_out",
    "narrow_dtype_slower",
    "other_device",
    "recompute_modelled",
]
MAX_GROUPS = 64
MAX_RANKS = 4096


class Host(Document):
    """Memory beside the device's own, over a link of its own."""

    capacity_bytes: Capacity = Field(description="what one device may fill of it")
    beta_s_per_byte: PerByte = Field(description="of the link, either way")
    update_s_per_byte: PerByte = Field(description="w: of optimizer states updated there")
    sources: Given = None


class Search(Document):
    """Modes that are allowed; null where all are."""

    parameters: Many[ParametersMode] | None = None
    gradients: Many[GradientsMode] | None = None
    optimizer: Many[OptimizerMode] | None = None
    activations: Many[ActivationsMode] | None = None

    def sorted(self) -> Self:
        """Modes in the order of ties."""
        asked = {state: getattr(self, state) for state in STATES}
        listed: dict[str, object] = {
            state: tuple(mode for mode in MODES[state] if mode in modes)
            for state, modes in asked.items()
            if modes is not None
        }
        return self.model_copy(update=listed)

    @model_validator(mode="after")
    def _some_of_each(self) -> Self:
        for state in STATES:
            modes = getattr(self, state)
            if modes is not None:
                if not modes:
                    raise fault("expected at least one mode, got none", where=state)
                refuse_duplicates(modes, "mode", state)
        return self


class MemoryProblem(Document):
    """The explicit form: a job whose other parallel degrees are fixed, one device or the devices of all its stages."""

    paper: Literal["memory"] = "memory"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    num_micro_batches: int = Field(ge=1, le=2**24, description="m: of a step")
    capacity_bytes: Capacity = Field(description="of the device")
    other_bytes: Bytes = Field(default=0.0, description="context, communicators, fragmentation: what no state explains")
    other_causes: ByCause = None
    other_measured: bool = Field(default=False, description="whether other_bytes is from a measured peak")
    rank: int | None = Field(
        default=None, ge=0, le=65535, description="the pipeline rank that groups and activations are of; null: not said"
    )
    groups: Many[Group]
    activations: Activations
    workspace_bytes: Bytes = Field(
        default=0.0, description="what lives while the backward of one layer runs, where other_bytes do not hold it"
    )
    ranks: Many[Rank] = Field(
        default=(),
        description="further pipeline ranks, which run the same placement: it must fit each, and takes as long as the "
        "slowest; those that another beats in every number may be left out",
    )
    host: Host | None = Field(default=None, description="null: nothing is offloaded")
    search: Search = Search()
    job: Job | None = Field(
        default=None, description="what a derivation took the bytes from: the check counts them again; null: stated"
    )
    cautions: dict[Caution, Annotated[str, Field(min_length=1, max_length=400)]] | None = Field(
        default=None, description="what the reader of a plan should know of these numbers: warnings by code"
    )
    notes: Json = Field(default=None, description="kept, never read")

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if not 1 <= len(self.groups) <= MAX_GROUPS:
            raise fault(f"expected 1 to {MAX_GROUPS} groups, got {len(self.groups)}", where="groups")
        refuse_duplicates([group.id for group in self.groups], "id", "groups")
        first = self.groups[0]
        for group in self.groups:
            if len(group.dims) != len(first.dims):
                raise fault(
                    f'expected as many dims as group "{first.id[:60]}" has, {len(first.dims)}, got {len(group.dims)}',
                    where=f"groups.{group.id}.dims",
                )
        if self.capacity_bytes <= self.other_bytes:
            raise fault(
                f"expected more than other_bytes = {self.other_bytes:g}, which leave nothing for the states, got "
                f"capacity_bytes = {self.capacity_bytes:g}",
                where="capacity_bytes",
            )
        return self

    @model_validator(mode="after")
    def _ranks_are_alike(self) -> Self:
        if not self.ranks:
            return self
        if len(self.ranks) > MAX_RANKS:
            raise fault(f"expected at most {MAX_RANKS} further ranks, got {len(self.ranks)}", where="ranks")
        if self.rank is None:
            raise fault('missing field "rank": it goes with ranks', code="missing_field", where="rank")
        refuse_duplicates([self.rank, *(each.rank for each in self.ranks)], "rank", "ranks")
        ids = [group.id for group in self.groups]
        for place, each in enumerate(self.ranks):
            if [group.id for group in each.groups] != ids:
                listed = ", ".join(ids)[:120]
                raise fault(f"expected the problem's groups in its order: {listed}", where=f"ranks.{place}.groups")
            for name in ("materialised_bytes", "unit_bytes"):
                own, given = getattr(self.activations, name), getattr(each.activations, name)
                if (own is None) != (given is None):
                    where = f"ranks.{place}.activations.{name}"
                    raise fault(f"expected {'none' if own is None else 'some'}, as activations have", where=where)
        return self

    def sorted(self) -> Self:
        """The canonical form: modes as the page lists them, ranks by number, causes that sum to what they explain.

        Groups stay in the order given.
        """
        explained: dict[str, object] = {
            "groups": tuple(group.sorted() for group in self.groups),
            "activations": self.activations.sorted(),
            "other_causes": parts_of(self.other_causes, self.other_bytes),
            "ranks": tuple(each.sorted() for each in sorted(self.ranks, key=lambda each: each.rank)),
        }
        return self.model_copy(update={**explained, "search": self.search.sorted()})

    def each_rank(self) -> tuple[Self, ...]:
        """A problem of one rank for every rank that is stated, the problem's own first."""
        if not self.ranks:
            return (self,)
        alone: dict[str, object] = {"ranks": (), "job": None}
        dims = [group.dims for group in self.groups]
        found = [self.model_copy(update=alone)]
        for each in self.ranks:
            groups = tuple(
                Group.model_construct(**dict(group), dims=over) for group, over in zip(each.groups, dims, strict=True)
            )
            own = {"groups": groups, "activations": each.activations, "workspace_bytes": each.workspace_bytes}
            found.append(self.model_copy(update={**alone, **own, "rank": each.rank}))
        return tuple(found)

    @property
    def num_dims(self) -> int:
        """n: data-parallel dimensions of every group."""
        return len(self.groups[0].dims)
