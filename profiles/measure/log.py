"""measurements.jsonl: what was measured, a line each, so that a run that was interrupted goes on.

The first line states what every price depends on: the device, the libraries and how they ran. Rows of another device
or version are never mixed in.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Annotated, BinaryIO, Literal, TypeVar

from pydantic import AfterValidator, Field, FiniteFloat

from profiles.document import Device
from profiles.errors import ProfileError, shown
from profiles.families import DTYPE_BYTES, FAMILIES
from profiles.measure import torn
from profiles.measure.header_rules import contradiction
from profiles.measure.place import Curve, Place, Sample
from profiles.strict_json import parse, read_limited
from profiles.validation import Part, validate

FILE_NAME = "measurements.jsonl"
FORMAT_VERSION = "1.0"
TORN = f"{FILE_NAME}: the last line was cut off and is dropped; its place is measured again"


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected printable characters")
    return text


Text = Annotated[str, Field(max_length=200), AfterValidator(_printable)]


class Conditions(Part):
    """The first line: what all rows of the file share."""

    format_version: Annotated[str, Field(pattern=r"^1\.\d+$")] = FORMAT_VERSION
    device: Device
    cores: Annotated[int, Field(ge=1)]
    software: dict[Text, Text]
    dtypes: list[Literal[tuple(DTYPE_BYTES)]]  # type: ignore[valid-type]
    ranks: Annotated[int, Field(ge=1)]
    threads: Annotated[int, Field(ge=1)]
    backend: Text


class Row(Part):
    """A line: a place and its sample."""

    family: Literal[tuple(FAMILIES)]  # type: ignore[valid-type]
    dtype: Literal[tuple(DTYPE_BYTES)]  # type: ignore[valid-type]
    backend: Text = ""
    workload: Text = ""
    axes: dict[Text, Annotated[int, Field(ge=1, lt=1 << 44)]]
    median_s: Annotated[FiniteFloat, Field(gt=0, le=1e6)]
    spread: Annotated[FiniteFloat, Field(ge=0)]
    count: Annotated[int, Field(ge=1)]
    kernel: Text
    clock_hz: Annotated[FiniteFloat, Field(gt=0)] | None = None
    throttled: Text = ""

    def place(self) -> Place:
        """Where on which curve. Raises ValueError if the axes are not those of the family."""
        family = FAMILIES[self.family]
        if set(self.axes) != set(family.axes):
            raise ValueError(f"expected the axes {', '.join(family.axes)} of {self.family}")
        fixed = tuple((axis, self.axes[axis]) for axis in family.axes[:-1])
        return Place(Curve(self.family, self.dtype, self.backend, self.workload, fixed), self.axes[family.along])

    def sample(self) -> Sample:
        """What was measured."""
        return Sample(self.median_s, self.spread, self.count, self.kernel, self.clock_hz, self.throttled)


M = TypeVar("M", Conditions, Row)


class Log:
    """The open file. `samples` holds what it has; `record` appends and flushes. `note` says what was repaired."""

    def __init__(self, folder: Path, conditions: Conditions, *, restart: bool = False) -> None:
        """Open or begin the file in `folder`, which is made if it is missing.

        Raises `ProfileError` if the file is of other conditions, not of this format, or cannot be written.
        """
        self.path = folder / FILE_NAME
        if folder.exists() and not folder.is_dir():
            raise ProfileError(
                f"expected a folder, got the file {shown(str(folder))!r}", code="out_of_range", where="output"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._stream = self.path.open("ab")
        except OSError as error:
            raise ProfileError(
                f"cannot write {FILE_NAME}: {error.strerror or 'unwritable'}", code="out_of_range", where="output"
            ) from None
        try:
            self._begin(conditions, restart)
        except BaseException:
            self._stream.close()
            raise

    def _begin(self, conditions: Conditions, restart: bool) -> None:
        _lock(self._stream)
        header = conditions.model_dump(exclude_none=True)
        data = b"" if restart else read_limited(self.path)
        kept = torn.without_torn_tail(data, _line(header))
        lines = kept.splitlines()
        self.samples: dict[Place, Sample] = {}
        notes = [TORN] if len(kept) < len(data) else []
        for number, place, sample in _rows(lines, conditions):
            if place in self.samples:
                notes.append(f"{FILE_NAME}, line {number}: {place.words()} was measured before; the later row counts")
            self.samples[place] = sample
        self.note = "; ".join(notes)
        self._stream.truncate(len(kept))
        if not lines:
            self._write(header)
        elif not kept.endswith((b"\n", b"\r")):
            self._stream.write(b"\n")

    def record(self, place: Place, sample: Sample) -> None:
        """Append a row; it is on the disk when this returns."""
        curve = place.curve
        row = Row(
            family=curve.family,
            dtype=curve.dtype,
            backend=curve.backend,
            workload=curve.workload,
            axes=place.axes,
            median_s=sample.median_s,
            spread=float(f"{sample.spread:.4g}"),
            count=sample.count,
            kernel=sample.kernel,
            clock_hz=sample.clock_hz,
            throttled=sample.throttled,
        )
        self._write(row.model_dump(exclude_defaults=True))
        self.samples[place] = row.sample()

    def _write(self, line: dict[str, object]) -> None:
        self._stream.write(_line(line))
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def __enter__(self) -> Log:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _where: TracebackType | None) -> None:
        self._stream.close()


def _line(value: dict[str, object]) -> bytes:
    return json.dumps(value, allow_nan=False).encode() + b"\n"


def _lock(stream: BinaryIO) -> None:
    """Hold the file until it is closed. Raises `ProfileError` if another process does."""
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ProfileError(
            f"another measurement is writing {FILE_NAME} in this folder", code="out_of_range", where="output"
        ) from None


def _rows(lines: list[bytes], conditions: Conditions) -> Iterator[tuple[int, Place, Sample]]:
    """The line, place and sample of each row. Raises `ProfileError` at one that no run of `conditions` wrote."""
    if not lines:
        return
    _same(_header(lines[0]), conditions)
    for number, line in enumerate(lines[1:], 2):
        row = _read(line, number, Row)
        try:
            place, sample = row.place(), row.sample()
            refused = contradiction(place, sample, conditions.dtypes, conditions.ranks, conditions.backend)
        except ValueError as error:
            refused = str(error)
        if refused is not None:
            raise ProfileError(f"{FILE_NAME}: {refused}", code="out_of_range", where=f"line {number}")
        yield number, place, sample


def _header(line: bytes) -> Conditions:
    """The first line. Raises `ProfileError` that says how to begin anew."""
    try:
        return _read(line, 1, Conditions)
    except ProfileError as error:
        raise ProfileError(
            f"{error.message}; expected the header of a measurement: choose another folder, or --restart begins anew",
            code=error.code,
            where=error.where or "output",
        ) from None


def _read(line: bytes, number: int, model: type[M]) -> M:
    name = f"{FILE_NAME}, line {number}"
    value = parse(line, name)
    version = value.get("format_version", FORMAT_VERSION) if isinstance(value, dict) else FORMAT_VERSION
    if isinstance(version, str) and version.split(".")[0] != FORMAT_VERSION.split(".")[0]:
        raise ProfileError(
            f"{name}: format_version {shown(version)!r} is not supported; this program reads 1.x",
            code="unsupported_version",
        )
    return validate(model, value, name)


def _same(found: Conditions, wanted: Conditions) -> None:
    """Raise `ProfileError` that names every condition in which the file differs from this run."""
    before, now = (_flat(one.model_dump(exclude={"format_version"})) for one in (found, wanted))
    for flat in (before, now):
        del flat["device.memory_bytes"]  # how much a machine reports changes with its kernel
    differences = [
        f"{name} {shown(str(before.get(name)))} there, {shown(str(now.get(name)))} here"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if differences:
        raise ProfileError(
            f"{FILE_NAME} was measured under other conditions: {'; '.join(differences)}; "
            "choose another folder, or --restart to measure anew",
            code="out_of_range",
            where="output",
        )


def _flat(value: dict[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            flat |= _flat(inner, f"{prefix}{key}.")
        else:
            flat[prefix + key] = inner
    return flat
