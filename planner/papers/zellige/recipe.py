"""Reference batches, drawn from bucket tables and records until a token budget is met: same recipe, same batch.

Drawing rule. Part number j of a recipe uses ``random.Random(f"{seed}/{j}")``; one uniform number u in [0, 1) picks one
element. A table part draws a bucket with probability proportional to p (p_use * p_keep) among those of its medium, then
an aspect ratio of its list, and takes the bucket's ``batch`` sequences, as one training step of one rank would; it
stops at the first sequence that reaches the part's token mark. A records part draws one record at a time, uniformly,
with its ``count``. The sequence that reaches the mark is kept.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from planner.errors import BadInputError
from planner.papers.zellige.batch import MAX_SEQUENCES, Gatherer, Record
from planner.papers.zellige.buckets import Bucket, load_buckets, pixel_size
from planner.validation import Document, Many, fault


class RecipePart(Document):
    """Where some of a batch's tokens come from: a bucket table, or records drawn uniformly."""

    tokens: int = Field(ge=1, le=2**40, description="draw until this many tokens are reached")
    table: str | None = Field(default=None, min_length=1, max_length=1000)
    media: Literal["all", "image", "video"] = "all"
    aspects: Many[str] = Field(default=("16:9",), min_length=1, max_length=64, strict=False)
    records: Many[Record] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.table is None) == (self.records is None):
            raise fault('expected either "table" or "records"', where="table")
        if self.records is not None and not self.records:
            raise fault("expected at least one record, got none", where="records")
        if any(record.id is not None for record in self.records or ()):
            raise fault("a record that may be drawn many times cannot have an id", where="records")
        return self


class Recipe(Document):
    """A seed and the parts of a batch."""

    seed: int = Field(default=0, ge=0, le=2**53)
    parts: Many[RecipePart]

    @model_validator(mode="after")
    def _some_parts(self) -> Self:
        if not self.parts:
            raise fault("expected at least one part, got none", where="parts")
        return self


def draw(recipe: Recipe, gatherer: Gatherer, base_folder: Path) -> None:
    """Put a recipe's sequences into a gatherer. Raises BadInputError naming the part."""
    for number, part in enumerate(recipe.parts):
        chance = random.Random(f"{recipe.seed}/{number}")
        try:
            if part.records is not None:
                _draw_records(part.records, part.tokens, chance, gatherer)
            else:
                buckets = _of_medium(load_buckets(part.table or "", base_folder), part.media)
                _draw_buckets(buckets, part, chance, gatherer)
        except BadInputError as error:
            place = f"derive.batch.recipe.parts.{number}"
            raise BadInputError(error.message, code=error.code, where=place) from None


def _of_medium(buckets: tuple[Bucket, ...], media: str) -> tuple[Bucket, ...]:
    chosen = tuple(b for b in buckets if media == "all" or (b.frames == 1) == (media == "image"))
    if not chosen:
        raise BadInputError(f"the bucket table has no {media} buckets", code="out_of_range")
    return chosen


def _draw_records(records: tuple[Record, ...], mark: int, chance: random.Random, gatherer: Gatherer) -> None:
    reached = 0
    while reached < mark:
        record = records[int(chance.random() * len(records))]
        gatherer.add(record)
        reached += record.length(gatherer.geometry) * record.count


def _draw_buckets(buckets: tuple[Bucket, ...], part: RecipePart, chance: random.Random, gatherer: Gatherer) -> None:
    steps = list(accumulate(bucket.probability for bucket in buckets))
    reached = 0
    while reached < part.tokens:
        bucket = buckets[min(bisect_right(steps, chance.random() * steps[-1]), len(buckets) - 1)]
        aspect = part.aspects[int(chance.random() * len(part.aspects))]
        size = pixel_size(bucket.resolution, aspect)
        one = Record(resolution=size, frames=bucket.frames)
        length = one.length(gatherer.geometry)
        needed = -(-(part.tokens - reached) // length)
        count = min(bucket.batch, needed, MAX_SEQUENCES)
        gatherer.add(one, count)
        reached += length * count
