"""Where a derived problem takes the stage time of a layout from: step logs, decode steps, trainer timers, or stated."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.papers.bidirl.measurements import DecodeRows, PrefillRows, StepRows, TimerRows
from planner.papers.bidirl.time_kinds import RolloutTime, Seconds, Tokens, TrainTime
from planner.validation import Document, Identity, fault

Unmeasured = Annotated[
    Literal["leave_out", "same_gpu_seconds"],
    Field(
        description="candidates without rows: no candidates, or beta in proportion to the GPUs of the nearest in size "
        "that has some"
    ),
]
OfRows = Annotated[Identity | None, Field(description="of rows that name none; null: the smallest that fits")]


class _Log(StepRows):
    """Times of whole batches, to which alpha + beta work / d + gamma L is fitted."""

    kind: Literal["log"]
    format: Literal["rows", "verl"] = Field(
        default="rows",
        description="verl: path is a table of its documentation, of which colocated runs are read",
    )
    layout: OfRows = None
    unmeasured: Unmeasured = "leave_out"
    alpha_s: Seconds | None = Field(default=None, description="null: fitted")

    @model_validator(mode="after")
    def _a_table_is_a_file(self) -> Self:
        if self.format == "verl" and self.path is None:
            raise fault('missing field "path": of the table', code="missing_field", where="path")
        return self


class RolloutLog(_Log):
    """Of rollout."""

    gamma_s_per_token: Seconds | None = Field(default=None, description="null: fitted")


class TrainLog(_Log):
    """Of training, where by default nothing waits for the longest response."""

    gamma_s_per_token: Seconds | None = Field(default=0.0, description="null: fitted")


class Decode(Document):
    """Rollout by decode steps and prefills, kind ``lengths``."""

    kind: Literal["decode"]
    layout: OfRows = None
    decode: DecodeRows = Field(description="tau_0 + tau_1 running is fitted")
    prefill: PrefillRows | None = Field(default=None, description="start-up + seconds a token is fitted")
    prefill_s_per_token: Seconds | None = Field(default=None, description="in place of prefill")
    alpha_s: Seconds = Field(default=0.0, description="start-up of a batch")
    mean_response_tokens: Tokens | None = Field(default=None, description="null: the mean of derive.responses")

    @model_validator(mode="after")
    def _prefill_is_told(self) -> Self:
        if (self.prefill is None) == (self.prefill_s_per_token is None):
            raise fault('expected "prefill" or "prefill_s_per_token"', code="missing_field", where="prefill")
        return self


class Timers(Document):
    """Training by the timers of its stages, kind ``stages``: fixed + seconds a chunk is fitted to each."""

    kind: Literal["timers"]
    layout: OfRows = None
    timers: TimerRows
    chunks: dict[Identity, Annotated[int, Field(ge=0, le=10**9)]] = Field(
        default_factory=dict, description="of a stage in the whole batch; batch.train_chunks where left out"
    )


class StatedRollout(Document):
    """As it is written, by layout; other candidates are none."""

    kind: Literal["stated"]
    times: dict[Identity, RolloutTime] = Field(min_length=1)


class StatedTrain(Document):
    """As it is written, by layout; other candidates are none."""

    kind: Literal["stated"]
    times: dict[Identity, TrainTime] = Field(min_length=1)


RolloutSource = Annotated[RolloutLog | Decode | StatedRollout, Field(discriminator="kind")]
TrainSource = Annotated[TrainLog | Timers | StatedTrain, Field(discriminator="kind")]
