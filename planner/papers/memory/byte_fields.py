"""The byte fields of a rank as a problem file states them: groups with their dimensions, and activations."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from planner.attribution import Causes, Sources, parts_of
from planner.validation import Document, Identity, Many, fault, refuse_duplicates

MAX_BYTES = 2.0**53
"""Beyond it whole bytes are no floats."""
LEAST = 1e-30
"""What is not 0 is no smaller: far below any byte or clock, and no product of two leaves what a float holds."""
MAX_DIMS = 4


def _not_tiny(value: float) -> float:
    if 0 < value < LEAST:
        raise fault(f"expected 0 or at least {LEAST:g}, got {value!r}")
    return value


NotTiny = AfterValidator(_not_tiny)
Bytes = Annotated[float, Field(ge=0, le=MAX_BYTES), NotTiny]
Seconds = Annotated[float, Field(ge=0, le=1e9), NotTiny]
PerByte = Annotated[float, Field(ge=0, le=1e3), NotTiny]
Capacity = Annotated[float, Field(ge=LEAST, le=MAX_BYTES)]
ByCause = Annotated[
    Causes | None,
    Field(description="the bytes before it by cause, for the reader, scaled to sum to them; null: not known"),
]
Given = Annotated[Sources | None, Field(description="shares of the time by source, for the reader; null: stated")]


class Dim(Document):
    """One data-parallel dimension: t = (n - 1) alpha + (n - 1) / n bytes beta for a gather over it."""

    id: Identity
    size: int = Field(ge=1, le=2**24, description="ranks along it")
    alpha_s: Seconds = Field(description="start-up of a step of the ring")
    beta_s_per_byte: PerByte = Field(description="of the ring's slowest link")
    beta_of: Literal["ring", "gpu"] = Field(
        default="ring",
        description="beta is of any ring over the dimension, or of one GPU's port: a ring that also runs over "
        "dimensions inside it goes through one for each of the ranks there",
    )
    sources: Given = None


class GroupBytes(Document):
    """What a rank has of parameters that are sharded over the same dimensions; bytes before sharding."""

    id: Identity
    parameters_bytes: Bytes = Field(description="B_P")
    gradients_bytes: Bytes = Field(description="B_G")
    optimizer_bytes: Bytes = Field(description="B_O: moments, and the fp32 copy where there is one")
    parameters_unit_bytes: Bytes = Field(default=0.0, description="U_P: most that is gathered at once")
    gradients_unit_bytes: Bytes = Field(default=0.0, description="U_G: most that is reduced at once")
    parameters_causes: ByCause = None

    @model_validator(mode="after")
    def _units_are_parts(self) -> Self:
        for unit, whole in (
            ("parameters_unit_bytes", self.parameters_bytes),
            ("gradients_unit_bytes", self.gradients_bytes),
        ):
            if getattr(self, unit) > whole:
                bound = f"{unit.replace('_unit', '')} = {whole:g}"
                raise fault(
                    f"expected at most {bound}, a unit is a part of it, got {getattr(self, unit):g}", where=unit
                )
        return self

    def sorted(self) -> Self:
        """Causes that sum to the bytes they explain."""
        scaled = parts_of(self.parameters_causes, self.parameters_bytes)
        return self.model_copy(update={"parameters_causes": scaled})


class Group(GroupBytes):
    """A group, the dense parameters or the experts, with its data-parallel dimensions."""

    dims: Many[Dim] = Field(description="D, innermost first")

    @model_validator(mode="after")
    def _dims_differ(self) -> Self:
        if not 1 <= len(self.dims) <= MAX_DIMS:
            raise fault(f"expected 1 to {MAX_DIMS} dims, got {len(self.dims)}", where="dims")
        refuse_duplicates([dim.id for dim in self.dims], "id", "dims")
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
        for name in ("materialised", "unit"):
            if getattr(self, f"{name}_causes") is not None and getattr(self, f"{name}_bytes") is None:
                raise fault(f"expected none without {name}_bytes", where=f"{name}_causes")
        return self

    def sorted(self) -> Self:
        """Causes that sum to the bytes they explain."""
        names = ("kept", "materialised", "unit")
        scaled = {
            f"{name}_causes": parts_of(getattr(self, f"{name}_causes"), getattr(self, f"{name}_bytes"))
            for name in names
        }
        return self.model_copy(update=scaled)

    def _refuse_alone(self, one: str, other: str) -> None:
        for given, missing in ((one, other), (other, one)):
            if getattr(self, given) is not None and getattr(self, missing) is None:
                raise fault(f'missing field "{missing}": it goes with {given}', code="missing_field", where=missing)


class Rank(Document):
    """A further pipeline rank of the job: its own bytes of the same groups, over the same dimensions."""

    rank: int = Field(ge=0, le=65535, description="its number in the pipeline")
    groups: Many[GroupBytes] = Field(description="the groups of the problem, in its order")
    activations: Activations
    workspace_bytes: Bytes = Field(default=0.0, description="what lives while the backward of one layer runs")

    def sorted(self) -> Self:
        """Causes that sum to the bytes they explain."""
        groups = tuple(group.sorted() for group in self.groups)
        return self.model_copy(update={"groups": groups, "activations": self.activations.sorted()})
