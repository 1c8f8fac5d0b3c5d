"""Measurements that a derived problem gives: rows in the problem itself, or in a file beside it."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from planner.papers.bidirl.problem import Role
from planner.papers.bidirl.time_kinds import LEAST_S, MAX_REPLICAS
from planner.validation import Document, Identity, Many, fault

MAX_ROWS = 100_000

Measured = Annotated[float, Field(ge=LEAST_S, le=1e12)]
Count = Annotated[int, Field(ge=1, le=10**9)]
OfLayout = Annotated[Identity | None, Field(description="by id; null: as the log says of rows that name none")]


class StepRow(Document):
    """A whole batch of one role."""

    role: Role | None = Field(default=None, description="rows of the other role are passed over; null: of this one")
    layout: OfLayout = None
    replicas: int = Field(ge=1, le=MAX_REPLICAS, description="d")
    work_factor: float = Field(default=1.0, gt=0, le=1e6, description="tokens of the batch over the mean of batches")
    max_response_tokens: float | None = Field(
        default=None, gt=0, le=1e9, description="L, the longest response; null: batch.max_response_tokens"
    )
    time_s: Measured


class DecodeRow(Document):
    """A decode step of one replica."""

    layout: OfLayout = None
    running: Count = Field(description="sequences that it decodes at once")
    time_s: Measured


class PrefillRow(Document):
    """A prefill on one replica."""

    layout: OfLayout = None
    tokens: Count
    time_s: Measured


class TimerRow(Document):
    """One stage of a train step on one replica."""

    layout: OfLayout = None
    stage: Identity
    chunks: int = Field(ge=0, le=10**9, description="that the replica ran; 0: of a stage that no chunk lengthens")
    time_s: Measured


AnyRow = StepRow | DecodeRow | PrefillRow | TimerRow


class _Rows(Document):
    path: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="of a file beside the problem: JSON Lines (.jsonl), else CSV, with the fields of rows",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        rows = getattr(self, "rows", None)
        if (self.path is None) == (rows is None):
            raise fault(f'expected "rows" or "path", got {"neither" if rows is None else "both"}')
        if rows is not None and not 1 <= len(rows) <= MAX_ROWS:
            raise fault(f"expected 1 to {MAX_ROWS:,} rows, got {len(rows):,}", where="rows")
        return self


class StepRows(_Rows):
    """Times of whole batches."""

    rows: Many[StepRow] | None = None


class DecodeRows(_Rows):
    """Times of decode steps."""

    rows: Many[DecodeRow] | None = None


class PrefillRows(_Rows):
    """Times of prefills."""

    rows: Many[PrefillRow] | None = None


class TimerRows(_Rows):
    """Times of the stages of train steps."""

    rows: Many[TimerRow] | None = None


AnyRows = StepRows | DecodeRows | PrefillRows | TimerRows
