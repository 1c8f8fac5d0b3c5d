"""The sequences of a step: records of resolution and frames, or of tokens, gathered into groups of equal length.

A record {resolution: [width, height], frames} becomes tokens by the strides of the model's VAE and its patch, which
the model's geometry knows (``DiTGeometry.tokens``).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, Self

from pydantic import Field, model_validator

from planner.errors import BadInputError
from planner.json_text import Json
from planner.validation import Document, Identity, fault, validate
from profiles.geometry import DiTGeometry

MAX_SEQUENCES = 10_000_000
MAX_LENGTHS = 10_000
"""Distinct lengths of a batch: each is a group with its own options."""
MAX_LINE_BYTES = 65_536
_REMEMBERED_LINES = 4096

Side = Annotated[int, Field(ge=1, le=2**20)]


class Record(Document):
    """Sequences of one size: a resolution in pixels and frames (1 is an image), or the tokens themselves."""

    id: Identity | None = None
    resolution: Annotated[tuple[Side, Side] | None, Field(strict=False, description="[width, height] in pixels")] = None
    frames: int = Field(default=1, ge=1, le=2**20)
    tokens: int | None = Field(default=None, ge=1, le=2**40)
    count: int = Field(default=1, ge=1, le=MAX_SEQUENCES)

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.tokens is None) == (self.resolution is None):
            given = "neither" if self.tokens is None else "both"
            raise fault(f'expected either "resolution" (with "frames") or "tokens", got {given}', where="resolution")
        if self.tokens is not None and self.frames != 1:
            raise fault('"frames" goes with "resolution", got it with "tokens"', where="frames")
        return self

    def length(self, geometry: DiTGeometry) -> int:
        """Tokens of each sequence under a model."""
        if self.resolution is None:
            return self.tokens or 0
        return geometry.tokens(*self.resolution, self.frames)


@dataclass(frozen=True)
class Batch:
    """Sequence ids by tokens, lengths ascending; ``digests`` are sha256 of the files read, by base name."""

    sequence_ids: Mapping[int, tuple[str, ...]]
    digests: Mapping[str, str]


class Gatherer:
    """Counts sequences by length. Records without an id are named t<tokens>-<i>, i in the order they come."""

    def __init__(self, geometry: DiTGeometry) -> None:
        self.geometry = geometry
        self._counts: Counter[int] = Counter()
        self._named: dict[int, list[str]] = {}
        self._names: set[str] = set()
        self._total = 0
        self.digests: dict[str, str] = {}

    def add(self, record: Record, times: int = 1) -> int:
        """Take a record's sequences ``times`` over and return its tokens. Raises BadInputError."""
        tokens = record.length(self.geometry)
        if record.id is None:
            self._count(tokens, record.count * times)
        else:
            self._name(tokens, record.id, record.count)
        if len(self._counts) + len(self._named) > 2 * MAX_LENGTHS:
            raise BadInputError(f"more than {MAX_LENGTHS} distinct lengths; round them to buckets", code="too_large")
        return tokens

    def _count(self, tokens: int, count: int) -> None:
        self._grow(count)
        self._counts[tokens] += count

    def _grow(self, count: int) -> None:
        self._total += count
        if self._total > MAX_SEQUENCES:
            raise BadInputError(f"more than {MAX_SEQUENCES} sequences in one batch", code="too_large")

    def _name(self, tokens: int, identity: str, count: int) -> None:
        self._grow(count)
        names = [identity] if count == 1 else [f"{identity}-{i}" for i in range(count)]
        for name in names:
            if name in self._names:
                raise BadInputError(f'sequence id "{name[:100]}" occurs twice', code="duplicate_id")
            self._names.add(name)
        self._named.setdefault(tokens, []).extend(names)

    def batch(self) -> Batch:
        """What was gathered. Raises BadInputError if nothing was, or if a given id collides with a made one."""
        lengths = sorted({*self._counts, *self._named})
        if not lengths:
            raise BadInputError("an empty batch has no makespan: expected at least one sequence", code="out_of_range")
        if len(lengths) > MAX_LENGTHS:
            raise BadInputError(f"more than {MAX_LENGTHS} distinct lengths; round them to buckets", code="too_large")
        sequence_ids = {}
        for tokens in lengths:
            made = [f"t{tokens}-{i}" for i in range(self._counts.get(tokens, 0))]
            clash = next((name for name in made if name in self._names), None) if self._names else None
            if clash:
                raise BadInputError(f'sequence id "{clash}" also names a record without id', code="duplicate_id")
            sequence_ids[tokens] = (*self._named.get(tokens, ()), *made)
        return Batch(sequence_ids, self.digests)

    def add_file(self, path: Path) -> None:
        """Stream a JSONL file of records; a faulty line is named. Memory grows with ids and lengths, not with lines."""
        name, sha256 = path.name, hashlib.sha256()
        remembered: dict[bytes, tuple[int, int]] = {}
        try:
            with path.open("rb") as stream:
                for number, line in _lines(stream, name):
                    sha256.update(line)
                    if line in remembered:
                        self._count(*remembered[line])
                    elif line.strip():
                        with _named(f"{name} line {number}"):
                            record = validate(Record, _parse(line))
                            tokens = self.add(record)
                        if record.id is None and len(remembered) < _REMEMBERED_LINES:
                            remembered[line] = tokens, record.count
        except OSError as error:
            raise BadInputError(f"cannot read {name}: {error.strerror or error}", code="not_json") from None
        self.digests[name] = sha256.hexdigest()


@contextmanager
def _named(place: str) -> Iterator[None]:
    """A bad input's message begins with the place."""
    try:
        yield
    except BadInputError as error:
        raise BadInputError(f"{place}: {error.message}", code=error.code, where=error.where) from None


def _lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise BadInputError(f"{name} line {number} is longer than {MAX_LINE_BYTES} bytes", code="too_large")
        if number == 1 and line.startswith(b"version https://git-lfs.github.com/spec"):
            raise BadInputError(f"{name} is a Git LFS pointer, not the file itself", code="not_json")
        yield number, line


def _parse(line: bytes) -> Json:
    def refuse(word: str) -> Json:
        raise BadInputError(f"{word} is no finite number", code="not_finite")

    def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        record = dict(pairs)
        if len(record) != len(pairs):
            raise BadInputError("a key occurs twice in one object", code="duplicate_id")
        return record

    try:
        return json.loads(line.decode("utf-8-sig"), parse_constant=refuse, object_pairs_hook=unique)
    except UnicodeDecodeError:
        raise BadInputError("not UTF-8 text", code="not_json") from None
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply, or a number too long"
        raise BadInputError(f"not JSON: {reason}", code="not_json") from None
