"""The pools for each interval of a series of demands, written out or of arrivals."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from planner.json_text import Json
from planner.papers.janus.tasks.sizing import SizingProblem
from planner.routing.document import (
    Digest,
    Path,
)
from planner.validation import Document, Many, fault

MAX_INTERVALS = 100_000


class Interval(Document):
    """A stretch of time and its demand; none: one request at a time."""

    start_s: float = Field(ge=0, le=1e12)
    duration_s: float = Field(gt=0, le=1e12)
    demand_tokens_per_s: float = Field(ge=0, le=1e15)


class Arrivals(Document):
    """Requests with their time and output length, in a file beside the problem: binned into the series.

    Read are Azure and BurstGPT CSV and Mooncake JSON Lines, told apart by their fields. ``tile_to_s`` repeats the
    trace until so much time is covered. ``scale`` multiplies its demand, or it is scaled to a peak or a mean.
    """

    path: Path
    sha256: Digest | None = Field(default=None, description="of the file; filled in, and checked where given")
    interval_s: float = Field(default=900.0, gt=0, le=1e9, description="seconds that one size of the pools is kept")
    tile_to_s: float | None = Field(default=None, gt=0, le=1e9, description="null: the trace once")
    scale: float = Field(default=1.0, gt=0, le=1e9, description="times the trace's own demand")
    peak_tokens_per_s: float | None = Field(
        default=None, gt=0, le=1e15, description="of the busiest interval, in place of scale"
    )
    mean_tokens_per_s: float | None = Field(default=None, gt=0, le=1e15, description="over all, in place of scale")
    settings_sha256: Digest | None = Field(
        default=None,
        description="filled in: of the file and of all that is stated here; beside other settings it is read again",
    )
    requests: int | None = Field(default=None, ge=0, description="filled in: requests of the file")
    lasts_s: float | None = Field(default=None, gt=0, le=1e12, description="filled in: what the trace lasts")
    mean_context_tokens: float | None = Field(
        default=None, ge=0, description="filled in: input and half of the output, mean over output tokens"
    )

    @model_validator(mode="after")
    def _one_scale(self) -> Self:
        stated = {"scale": self.scale != 1.0} | {
            name: getattr(self, name) is not None for name in ("peak_tokens_per_s", "mean_tokens_per_s")
        }
        names = [name for name, given in stated.items() if given]
        if len(names) > 1:
            raise fault(f"each of {' and '.join(names)} scales the demand: state one of them", where=names[-1])
        return self


def refuse_one_demand(document: Json) -> None:
    """Refuse a document of one demand whose task is a series, saying which field takes its place."""
    if not isinstance(document, dict) or document.keys() & {"series", "arrivals"}:
        return
    if "demand_tokens_per_s" in document:
        message = (
            'missing field "series": task series takes it, or "arrivals", in place of demand_tokens_per_s, which goes '
            "with task scaling"
        )
        raise fault(message, code="missing_field", where="series")


class SeriesProblem(SizingProblem):
    """The pools for each interval of a series: written out, or of arrivals."""

    task: Literal["series"]
    series: Many[Interval] = ()
    arrivals: Arrivals | None = None

    @model_validator(mode="before")
    @classmethod
    def _not_of_one_demand(cls, document: Json) -> Json:
        refuse_one_demand(document)
        return document

    @model_validator(mode="after")
    def _intervals_in_order(self) -> Self:
        if not self.series and self.arrivals is None:
            raise fault('missing field "series": state it, or "arrivals"', code="missing_field", where="series")
        if len(self.series) > MAX_INTERVALS:
            message = f"expected at most {MAX_INTERVALS:,} intervals, got {len(self.series):,}"
            raise fault(message, code="too_large", where="series")
        for index, (one, other) in enumerate(pairwise(self.series), start=1):
            end = one.start_s + one.duration_s
            if other.start_s < end * (1 - 1e-12):
                message = f"expected a start after the interval before, which ends at {end:.9g}, got {other.start_s}"
                raise fault(message, where=f"series.{index}.start_s")
        return self
