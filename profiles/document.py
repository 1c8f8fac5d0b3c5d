"""The profile document: one JSON file holds everything known about one device. SI units, the unit in each name."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, model_validator

from profiles.errors import shown
from profiles.families import DTYPE_BYTES, FAMILIES
from profiles.pace import LEAST_SIZE, SIZE, Pacing, known_costs
from profiles.roofline import MODELS
from profiles.table import LARGEST_AXIS_VALUE, CostTable

FORMAT_VERSION = "1.0"
SCHEMA_ID = "urn:girih:schema:profile:1.0"


def _whole(value: object) -> object:
    """96e9 for 96000000000: a float without a fraction counts as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 else value


Name = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[FiniteFloat, Field(gt=0)]
Share = Annotated[FiniteFloat, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
Latency = Annotated[FiniteFloat, Field(gt=0, le=1e6)]


class Part(BaseModel):
    """Settings shared by every part of the document: frozen, no unknown fields, no coercion of strings."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Device(Part):
    """What the vendor states about one device and its node. A number that nobody stated is null."""

    name: Name
    memory_bytes: Annotated[int, Field(gt=0), BeforeValidator(_whole)] | None = None
    memory_bandwidth_bytes_per_s: Positive | None = None
    peak_flop_per_s: dict[Name, Positive] = Field(default_factory=dict, description="dense peak by dtype")
    multiprocessors: Annotated[int, Field(ge=1)] | None = Field(None, description="streaming multiprocessors")
    gpus_per_node: Annotated[int, Field(ge=1)] | None = None
    intra_node_bandwidth_bytes_per_s: Positive | None = Field(None, description="per GPU, one direction")


class Provenance(Part):
    """Where rows come from and under which licence."""

    id: Name
    title: Name
    version: str = ""
    licence: Name
    files: list[Name] = Field(default_factory=list, description="paths inside the source, or base names")
    note: str = ""


class HeldOut(Part):
    """Relative error |predicted / measured - 1| over rows that were held out of the prediction."""

    held_out: Name = Field(description="what was left out, e.g. 'one value of m' or 'length > 16384'")
    region: str = Field("", description="which rows were scored, by their measured time; empty: all")
    rows: Count
    median: Share
    p90: Share
    bias: FiniteFloat = Field(0.0, description="median of predicted / measured - 1, signed")


class Roofline(Part):
    """A utilisation model fitted to the rows of one table; `profiles.roofline` gives its formula by family."""

    coefficients: dict[Name, Positive]
    fit: HeldOut
    extremes: HeldOut | None = Field(None, description="fitted to the smaller rows, asked for the largest")


class Pace(Part):
    """How log seconds move between two rows of a curve; `profiles.pace` names the costs of each family."""

    weights: dict[Name, Annotated[FiniteFloat, Field(gt=0, le=1)]] = Field(description="by cost; their sum is 1")
    multiprocessors: Annotated[int, Field(ge=1)] | None = Field(None, description="of the device, where waves count")


class Counts(Part):
    """What happened to the rows on their way here."""

    read: Count
    repeats_merged: Count = 0
    not_monotone_dropped: Count = 0
    replaced: Count = Field(0, description="rows that contradict the rest and carry an estimate instead of their time")
    thinned: Count = 0
    filled: Count = Field(0, description="rows between measured ones, estimated from their siblings")
    refused: Count = 0


class Table(Part):
    """Rows of one family, dtype, backend and workload: axis columns and seconds, all of one length."""

    family: Literal[tuple(FAMILIES)]  # type: ignore[valid-type]
    dtype: Literal[tuple(DTYPE_BYTES)]  # type: ignore[valid-type]
    backend: str = ""
    workload: str = ""
    kernels: list[str] = Field(default_factory=list)
    provenance: Name
    policy: list[str] = Field(default_factory=list)
    counts: Counts = Field(default_factory=lambda: Counts(read=0), description="default: read is the number of rows")
    repeat_spread: HeldOut | None = Field(None, description="how far repeats of one key lie from their median")
    errors: list[HeldOut] = Field(default_factory=list, description="leave-one-out over all rows read, by axis")
    roofline: Roofline | None = None
    pace: Pace | None = Field(None, description="null: log-log interpolation")
    columns: dict[Name, list[int]] = Field(description="positive whole numbers, one list per axis of the family")
    latency_s: list[Latency]
    estimated_rows: list[Count] = Field(
        default_factory=list,
        description="numbers of rows whose time is not their own measurement: it contradicted the rest, or there is "
        "none. They carry what their siblings say, or the nearest kept row at the end of a curve, and count as "
        "interpolated",
    )

    @model_validator(mode="before")
    @classmethod
    def _all_rows_were_read(cls, value: Any) -> Any:
        if isinstance(value, dict) and "counts" not in value and isinstance(value.get("latency_s"), list):
            return {**value, "counts": {"read": len(value["latency_s"])}}
        return value

    @model_validator(mode="after")
    def _roofline_fits_the_family(self) -> Self:
        if self.roofline is None:
            return self
        model = MODELS.get(self.family)
        if model is None:
            raise ValueError(f"roofline must be null: family {self.family} has no formula")
        names, got = model.start, self.roofline.coefficients
        if set(got) != set(names):
            listed = shown(", ".join(got)) or "none"
            raise ValueError(f"roofline.coefficients of family {self.family} are {', '.join(names)}; got {listed}")
        return self

    @model_validator(mode="after")
    def _pace_fits_the_family(self) -> Self:
        if self.pace is not None:
            known = [SIZE, *known_costs(self.family, self.pace.multiprocessors)]
            unknown = sorted(set(self.pace.weights) - set(known))
            if unknown or SIZE not in self.pace.weights:
                listed = shown(", ".join(unknown)) or f"no {SIZE}"
                raise ValueError(
                    f"pace.weights of family {self.family} are {', '.join(known)}, {SIZE} always; got {listed}"
                )
            total, least = sum(self.pace.weights.values()), self.pace.weights[SIZE]
            if abs(total - 1.0) > 0.01 or least < LEAST_SIZE / 2:
                raise ValueError(
                    f"pace.weights must add up to 1 with {SIZE} at least {LEAST_SIZE}; they add up to {total:g} with "
                    f"{SIZE} {least:g}"
                )
        return self

    @model_validator(mode="after")
    def _columns_fit_the_family(self) -> Self:
        axes = FAMILIES[self.family].axes
        if set(self.columns) != set(axes):
            raise ValueError(
                f"columns of family {self.family} are {', '.join(axes)}; got {shown(', '.join(self.columns))}"
            )
        lengths = {axis: len(column) for axis, column in self.columns.items()}
        wrong = [f"{axis} has {length}" for axis, length in lengths.items() if length != len(self.latency_s)]
        if wrong:
            raise ValueError(f"latency_s has {len(self.latency_s)} rows but {', '.join(wrong)}")
        if not self.latency_s:
            raise ValueError("a table needs at least one row")
        if any(row >= len(self.latency_s) for row in self.estimated_rows):
            raise ValueError(f"estimated_rows names a row beyond the last, {len(self.latency_s) - 1}")
        try:
            columns = np.array([self.columns[axis] for axis in axes], dtype=np.int64)
        except OverflowError:
            raise ValueError(f"expected columns in 1..{LARGEST_AXIS_VALUE}, got a number beyond 64 bits") from None
        beyond = (columns < 1) | (columns > LARGEST_AXIS_VALUE)
        if beyond.any():
            axis, row = (int(place) for place in np.argwhere(beyond)[0])
            got = f"got {columns[axis, row]} in row {row}"
            raise ValueError(f"expected columns.{axes[axis]} in 1..{LARGEST_AXIS_VALUE}, {got}")
        if _repeats(columns):
            raise ValueError(f"two rows have the same {', '.join(axes)}: merge repeats before writing a profile")
        return self

    @property
    def key(self) -> tuple[str, str, str, str]:
        """(family, dtype, backend, workload): unique in a document."""
        return self.family, self.dtype, self.backend, self.workload

    def cost_table(self) -> CostTable:
        """The rows as arrays, ready for lookups."""
        family = FAMILIES[self.family]
        pace = Pacing(family, self.pace.weights, self.pace.multiprocessors) if self.pace else Pacing(family)
        return CostTable(family, self.columns, self.latency_s, self.estimated_rows, pace)


def _repeats(columns: npt.NDArray[np.int64]) -> bool:
    """Whether two rows are equal; (axes, rows). Sorted rows, as written here, need one pass."""
    step = columns[:, 1:] - columns[:, :-1]
    first = np.take_along_axis(step, (step != 0).argmax(axis=0)[None, :], axis=0)[0]
    return not (first > 0).all() and np.unique(columns, axis=1).shape[1] < columns.shape[1]


class ProfileDocument(Part):
    """A whole profile file."""

    format_version: Annotated[str, Field(pattern=r"^1\.\d+$")] = FORMAT_VERSION
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,99}$")]
    device: Device
    provenance: Annotated[list[Provenance], Field(min_length=1)]
    notes: list[str] = Field(default_factory=list)
    tables: list[Table]

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        ids = [entry.id for entry in self.provenance]
        if len(set(ids)) != len(ids):
            raise ValueError("two provenance entries share an id")
        keys = set()
        for number, table in enumerate(self.tables):
            if table.provenance not in ids:
                raise ValueError(
                    f"tables.{number}.provenance {shown(table.provenance)!r} is not one of {', '.join(ids)}"
                )
            if table.key in keys:
                raise ValueError(f"tables.{number} repeats family, dtype, backend and workload {table.key}")
            keys.add(table.key)
        return self


def profile_schema() -> dict[str, object]:
    """JSON Schema 2020-12 of a profile file."""
    schema: dict[str, object] = ProfileDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID, **schema}
