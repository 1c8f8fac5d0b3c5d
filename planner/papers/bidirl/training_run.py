"""The ``simulation`` of a problem file: steps, and the work and longest response of each, listed or drawn."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.validation import Document, Many, fault

MAX_STEPS = 20_000
MAX_LISTED = 100_000
MAX_SAMPLES = 1_000_000
"""Lengths that one stands for in an empirical distribution."""

Factor = Annotated[float, Field(gt=0, le=1e6)]
Length = Annotated[float, Field(gt=0, le=1e9)]


class Lognormal(Document):
    """Lengths of responses: median * exp(sigma z), z standard normal, cut at ``cap``."""

    distribution: Literal["lognormal"]
    median: Length = Field(description="tokens")
    sigma: float = Field(ge=0, le=10, description="of the logarithm: the larger, the longer the tail")
    cap: Length = Field(description="tokens; longer ones are cut there")


class Empirical(Document):
    """Lengths of responses that were met, each as likely as any other."""

    distribution: Literal["empirical"]
    tokens: Many[Length]
    cap: Length | None = Field(default=None, description="tokens; longer ones are cut there; null: none is")

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not 1 <= len(self.tokens) <= MAX_SAMPLES:
            message = f"expected 1 to {MAX_SAMPLES:,} lengths, got {len(self.tokens):,}"
            raise fault(message, where="tokens")
        return self


Responses = Annotated[Lognormal | Empirical, Field(discriminator="distribution")]


class Drawn(Document):
    """What was drawn for each step, and the digest of what it was drawn by."""

    work_factor: Many[Factor] = Field(min_length=1, description="w_k: tokens of the batch over the mean of all batches")
    max_response_tokens: Many[Length] = Field(min_length=1, description="L_k")
    by: str = Field(description="sha256 of what says how to draw: drawn again where that is another")


class Simulation(Document):
    """The training run that is replayed."""

    steps: int = Field(default=20, ge=1, le=MAX_STEPS, description="S")
    work_factor: Many[Factor] | None = Field(default=None, description="w_k, cycled; null: as drawn, or 1 throughout")
    max_response_tokens: Many[Length] | None = Field(
        default=None, description="L_k, cycled; null: as drawn, or batch.max_response_tokens throughout"
    )
    responses: Responses | None = Field(default=None, description="lengths to draw what is not listed from")
    seed: int = Field(default=0, ge=0, lt=2**63, description="of the draw")
    batches: int | None = Field(
        default=None, ge=1, le=MAX_STEPS, description="batches that are drawn, then cycled; null: one a step"
    )
    drawn: Drawn | None = Field(default=None, description="filled in where responses are given")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for name in ("work_factor", "max_response_tokens"):
            listed = getattr(self, name)
            if listed is not None and not 1 <= len(listed) <= MAX_LISTED:
                raise fault(f"expected 1 to {MAX_LISTED:,} values, got {len(listed):,}", where=name)
        if self.responses is None and self.batches is not None:
            raise fault('expected none without "responses", which are what is drawn', where="batches")
        if self.responses is not None and self.work_factor is not None and self.max_response_tokens is not None:
            raise fault("expected none where work_factor and max_response_tokens are listed", where="responses")
        return self
