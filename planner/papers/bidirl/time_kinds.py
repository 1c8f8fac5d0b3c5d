"""The kinds of stage time of a problem file (page, section 3.2): what each is given by, and what it is of a part.

All are of one whole batch on d replicas. Part q of it, from 0 to 1, is what the fields say; of nothing it is what needs
no work.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.attribution import Sources
from planner.validation import Document, Identity, Many, fault, refuse_duplicates

LEAST_S = 1e-12
"""A time above 0 is no shorter, so that no rate leaves what a float holds."""
MAX_REPLICAS = 2**24
MAX_ENTRIES = 65_536
"""Of a table."""
MAX_STAGES = 64

Seconds = Annotated[float, Field(ge=0, le=1e12)]
Tokens = Annotated[float, Field(ge=0, le=1e9)]
Given = Annotated[Sources | None, Field(description="shares of the time by source, for the reader; null: stated")]


POOR = 0.2
"""p90 of the relative errors of a fit above which it is not to be believed (page, section 6)."""


class Fit(Document):
    """What a time was fitted to, and how far it is to be believed; for the reader."""

    rows: int = Field(ge=1, description="measured times")
    from_replicas: int = Field(ge=1, description="fewest of them")
    to_replicas: int = Field(ge=1, description="most of them")
    median_error: float = Field(ge=0, description="relative, of the rows")
    p90_error: float = Field(ge=0, description="relative, of the rows")


class Linear(Document):
    """M(d) = alpha + beta / d + gamma L; part q of the batch takes alpha + q beta / d + gamma L.

    A replay takes alpha + gamma L_k of a train step for its fixed part.
    """

    kind: Literal["linear"] = "linear"
    alpha_s: Seconds = Field(default=0.0, description="start-up")
    beta_s: Seconds = Field(description="replica-seconds of divisible work")
    gamma_s_per_token: Seconds = Field(default=0.0, description="of the longest response: no replica count removes it")
    fit: Fit | None = Field(default=None, description="filled in where it was fitted")
    sources: Given = None

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        if self.alpha_s + self.beta_s + self.gamma_s_per_token < LEAST_S:
            raise fault("expected a time above 0, got alpha_s, beta_s and gamma_s_per_token of 0")
        return self


class Table(Document):
    """Measured times; a count of replicas that is not listed is no candidate. Part q takes q times as long."""

    kind: Literal["table"]
    replicas: Many[Annotated[int, Field(ge=1, le=MAX_REPLICAS)]] = Field(description="d, increasing")
    time_s: Many[Annotated[float, Field(ge=LEAST_S, le=1e12)]] = Field(description="M(d), for each")
    sources: Given = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not 1 <= len(self.replicas) <= MAX_ENTRIES:
            message = f"expected 1 to {MAX_ENTRIES:,} counts of replicas, got {len(self.replicas):,}"
            raise fault(message, where="replicas")
        if len(self.time_s) != len(self.replicas):
            message = f"expected as many as replicas, {len(self.replicas)}, got {len(self.time_s)}"
            raise fault(message, where="time_s")
        for one, other in pairwise(self.replicas):
            if one >= other:
                got = f"{other} after {one}"
                raise fault(f"expected increasing counts, got {got}", where="replicas")
        return self


class Lengths(Document):
    """Rollout by decode steps: bound by work, or by the longest response.

    n = ceil(Q / d) responses_per_group sequences are on the fullest replica, b = min(concurrency, n) of them at once;
    M = alpha + n prompt_tokens prefill + (step_base + step_per_sequence b) max(L, n mean / b). No groups take alpha.
    """

    kind: Literal["lengths"]
    alpha_s: Seconds = Field(default=0.0, description="start-up")
    prompt_tokens: Tokens = Field(description="of one sequence")
    prefill_s_per_token: Seconds
    mean_response_tokens: Tokens = Field(description="at most batch.max_response_tokens")
    concurrency: int = Field(ge=1, le=10**9, description="sequences that a replica decodes at once")
    step_base_s: Seconds = Field(description="tau_0, of a decode step")
    step_per_sequence_s: Seconds = Field(description="tau_1, of a decode step")
    sources: Given = None

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        if self.alpha_s + self.step_base_s + self.step_per_sequence_s < LEAST_S:
            raise fault("expected a time above 0, got alpha_s, step_base_s and step_per_sequence_s of 0")
        return self


class Stage(Document):
    """A stage of a train step: fixed + ceil(chunks / d) chunk."""

    name: Identity
    fixed_s: Seconds = Field(default=0.0, description="of the step, whatever is left of the batch")
    chunks: int = Field(default=0, ge=0, le=10**9, description="of the whole batch, over all replicas")
    chunk_s: Seconds = Field(default=0.0, description="of one chunk on one replica")


class Stages(Document):
    """A train step stage by stage; of U of the N_u chunks, a stage has ceil(chunks U / (N_u d)) on each replica."""

    kind: Literal["stages"]
    stages: Many[Stage]
    sources: Given = None

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        if not 1 <= len(self.stages) <= MAX_STAGES:
            raise fault(f"expected 1 to {MAX_STAGES} stages, got {len(self.stages)}", where="stages")
        refuse_duplicates([stage.name for stage in self.stages], "name", "stages")
        if sum(stage.fixed_s + stage.chunks * stage.chunk_s for stage in self.stages) < LEAST_S:
            raise fault("expected a time above 0, got stages that take none", where="stages")
        return self


RolloutTime = Annotated[Linear | Table | Lengths, Field(discriminator="kind")]
TrainTime = Annotated[Linear | Table | Stages, Field(discriminator="kind")]
AnyTime = Linear | Table | Lengths | Stages
