"""The problem file of the memory paper in explicit bytes and seconds (page, section 6), validated once at the door."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.attribution import Causes, Sources
from planner.json_text import Json
from planner.memory.modes import ActivationsMode, GradientsMode, OptimizerMode, ParametersMode
from planner.papers.memory.job import Job
from planner.validation import Document, Identity, Many, fault, refuse_duplicates

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
    "layers_averaged",
    "left_out",
    "narrow_dtype_slower",
    "other_device",
    "recompute_modelled",
]
MAX_BYTES = 2.0**53
"""Beyond it whole bytes are no floats."""
MAX_GROUPS = 64
MAX_DIMS = 4
ROUNDING = 1e-6
"""How far bytes by cause may sum to something else than the bytes they explain, relative."""

Bytes = Annotated[float, Field(ge=0, le=MAX_BYTES)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]
PerByte = Annotated[float, Field(ge=0, le=1e3)]
ByCause = Annotated[Causes | None, Field(description="the bytes before it by cause, for the reader; null: not known")]
Given = Annotated[Sources | None, Field(description="shares of the time by source, for the reader; null: stated")]


class Dim(Document):
    """One data-parallel dimension: t = (n - 1) alpha + (n - 1) / n bytes beta for a gather over it."""

    id: Identity
    size: int = Field(ge=1, le=2**24, description="ranks along it")
    alpha_s: Seconds = Field(description="start-up of a step of the ring")
    beta_s_per_byte: PerByte = Field(description="of the ring's slowest link")
    sources: Given = None


class Group(Document):
    """Parameters that are sharded over the same dimensions: the dense ones, or the experts; bytes before sharding."""

    id: Identity
    parameters_bytes: Bytes = Field(description="B_P")
    gradients_bytes: Bytes = Field(description="B_G")
    optimizer_bytes: Bytes = Field(description="B_O: moments, and the fp32 copy where there is one")
    parameters_unit_bytes: Bytes = Field(default=0.0, description="U_P: most that is gathered at once")
    gradients_unit_bytes: Bytes = Field(default=0.0, description="U_G: most that is reduced at once")
    parameters_causes: ByCause = None
    dims: Many[Dim] = Field(description="D, innermost first")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not 1 <= len(self.dims) <= MAX_DIMS:
            raise fault(f"expected 1 to {MAX_DIMS} dims, got {len(self.dims)}", where="dims")
        refuse_duplicates([dim.id for dim in self.dims], "id", "dims")
        for unit, whole in (
            ("parameters_unit_bytes", self.parameters_bytes),
            ("gradients_unit_bytes", self.gradients_bytes),
        ):
            if getattr(self, unit) > whole:
                bound = f"{unit.replace('_unit', '')} = {whole:g}"
                raise fault(
                    f"expected at most {bound}, a unit is a part of it, got {getattr(self, unit):g}", where=unit
                )
        _refuse_other_sum(self.parameters_causes, self.parameters_bytes, "parameters_causes", "parameters_bytes")
        return self


class Activations(Document):
    """What the backward pass needs of the forward one, at the device's peak."""

    kept_bytes: Bytes = Field(description="B_A: of all micro-batches in flight, and of the ends")
    materialised_bytes: Bytes | None = Field(
        default=None, description="the same where they are recomputed, with the transient; null: never recomputed"
    )
    recompute_s: Seconds | None = Field(default=None, description="of one micro-batch; goes with materialised_bytes")
    unit_bytes: Bytes | None = Field(
        default=None, description="on the device where they are offloaded: double buffer and ends; null: never"
    )
    micro_batch_bytes: Bytes | None = Field(
        default=None, description="of one micro-batch over all its chunks; goes with unit_bytes"
    )
    kept_causes: ByCause = None
    materialised_causes: ByCause = None
    unit_causes: ByCause = None
    recompute_sources: Given = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        self._refuse_alone("materialised_bytes", "recompute_s")
        self._refuse_alone("unit_bytes", "micro_batch_bytes")
        for name in ("kept", "materialised", "unit"):
            whole = getattr(self, f"{name}_bytes")
            _refuse_other_sum(getattr(self, f"{name}_causes"), whole, f"{name}_causes", f"{name}_bytes")
        return self

    def _refuse_alone(self, one: str, other: str) -> None:
        for given, missing in ((one, other), (other, one)):
            if getattr(self, given) is not None and getattr(self, missing) is None:
                raise fault(f'missing field "{missing}": it goes with {given}', code="missing_field", where=missing)


class Host(Document):
    """Memory beside the device's own, over a link of its own."""

    capacity_bytes: float = Field(gt=0, le=MAX_BYTES, description="what one device may fill of it")
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
    """The explicit form: one device of a job whose other parallel degrees are fixed."""

    paper: Literal["memory"] = "memory"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    num_micro_batches: int = Field(ge=1, le=2**24, description="m: of a step")
    capacity_bytes: float = Field(gt=0, le=MAX_BYTES, description="of the device")
    other_bytes: Bytes = Field(
        default=0.0, description="context, communicators, workspace, fragmentation: what no state explains"
    )
    other_causes: ByCause = None
    other_measured: bool = Field(default=False, description="whether other_bytes is from a measured peak")
    groups: Many[Group]
    activations: Activations
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
        _refuse_other_sum(self.other_causes, self.other_bytes, "other_causes", "other_bytes")
        return self

    def sorted(self) -> Self:
        """The canonical form: modes as the page lists them, and no job that gives other bytes, which then are stated.

        Groups stay as given.
        """
        from planner.papers.memory.checks.coefficients import differing  # it reads problems

        changed = self.job is not None and any(differing(self))
        job = None if changed else self.job
        return self.model_copy(update={"search": self.search.sorted(), "job": job})

    @property
    def num_dims(self) -> int:
        """n: data-parallel dimensions of every group."""
        return len(self.groups[0].dims)


def _refuse_other_sum(causes: Causes | None, whole: float | None, where: str, name: str) -> None:
    """Bytes by cause explain a field, and so sum to it."""
    if causes is None:
        return
    if whole is None:
        raise fault(f"expected none without {name}", where=where)
    total = math.fsum(causes.values())
    if abs(total - whole) > ROUNDING * max(whole, 1.0):
        raise fault(f"expected bytes that sum to {name} = {whole:g}, got {total:g}", where=where)
