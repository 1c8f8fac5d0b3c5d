"""How a problem states costs (a line or a table) and amounts of bytes (a number or by cause), in either form."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from planner.attribution import Causes, Said, Sources
from planner.validation import Document, Many, fault, shown_value

Seconds = Annotated[float, Field(ge=0, le=1e9)]
Given = Annotated[Sources | None, Field(description="shares of the time by source, for the reader; null: stated")]
Amount = Annotated[float, Field(ge=0, le=1e15)]
Slope = Annotated[float, Field(ge=0, le=1e9)]
Cautions = Annotated[
    Said | None,
    Field(description="what the reader of a plan should know of these prices: warnings by code"),
]


class SampleCost(Document):
    """t = alpha + beta x samples (eq. 1)."""

    alpha_s: Seconds = Field(description="seconds whatever the load")
    beta_s_per_sample: Slope = Field(description="seconds more with each sample")
    sources: Given = None
    cautions: Cautions = None

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        _refuse_free(self.alpha_s + self.beta_s_per_sample, "beta_s_per_sample")
        return self


class TokenCost(Document):
    """t = alpha + beta x tokens (eq. 3 and 4)."""

    alpha_s: Seconds = Field(description="seconds whatever the load")
    beta_s_per_token: Slope = Field(description="seconds more with each token")
    sources: Given = None
    cautions: Cautions = None

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        _refuse_free(self.alpha_s + self.beta_s_per_token, "beta_s_per_token")
        return self


class SampleTable(Document):
    """Times at numbers of samples, linear between them: for kernels that no straight line describes."""

    samples: Many[Amount] = Field(description="ascending")
    times_s: Many[Seconds] = Field(description="one for each number of samples")
    sources: Given = None
    cautions: Cautions = None

    @model_validator(mode="after")
    def _is_a_curve(self) -> Self:
        _refuse_bad_curve("samples", self.samples, self.times_s)
        return self


class TokenTable(Document):
    """Times at numbers of tokens, linear between them."""

    tokens: Many[Amount] = Field(description="ascending")
    times_s: Many[Seconds] = Field(description="one for each number of tokens")
    sources: Given = None
    cautions: Cautions = None

    @model_validator(mode="after")
    def _is_a_curve(self) -> Self:
        _refuse_bad_curve("tokens", self.tokens, self.times_s)
        return self


def _refuse_free(total: float, slope: str) -> None:
    if total <= 0:
        raise fault(f"expected alpha_s + {slope} > 0: a task that takes no time is no task")


def _refuse_bad_curve(name: str, amounts: tuple[float, ...], times_s: tuple[float, ...]) -> None:
    if not 1 <= len(amounts) <= 4096:
        raise fault(f"expected 1 to 4096 points, got {len(amounts)}", where=name)
    if len(times_s) != len(amounts):
        raise fault(f"expected one time for each of the {len(amounts)} {name}, got {len(times_s)}", where="times_s")
    if any(low >= high for low, high in pairwise(amounts)):
        raise fault(f"expected {name} in ascending order without repeats", where=name)
    if min(times_s) <= 0:
        raise fault("expected times_s > 0: a task that takes no time is no task", where="times_s")


def _form(linear: str, tabulated: str) -> Discriminator:
    def form(value: object) -> str:
        listed = "times_s" in value if isinstance(value, dict) else hasattr(value, "times_s")
        return tabulated if listed else linear

    return Discriminator(form)


def _refuse_other(value: object) -> object:
    if isinstance(value, dict | Document):
        return value
    raise fault(f"expected a cost, an object, got {shown_value(value)}", code="wrong_type")


PerSample = Annotated[
    Annotated[SampleCost, Tag("SampleCost")] | Annotated[SampleTable, Tag("SampleTable")],
    _form("SampleCost", "SampleTable"),
    BeforeValidator(_refuse_other),
]
"""Seconds by samples on one attention GPU: a line, or a table."""
PerToken = Annotated[
    Annotated[TokenCost, Tag("TokenCost")] | Annotated[TokenTable, Tag("TokenTable")],
    _form("TokenCost", "TokenTable"),
    BeforeValidator(_refuse_other),
]
"""Seconds by tokens: a line, or a table."""


def _bytes_form(value: object) -> str:
    return "by cause" if isinstance(value, dict) else "number"


Bytes = Annotated[
    Annotated[Annotated[float, Field(ge=0, le=1e24)], Tag("number")] | Annotated[Causes, Tag("by cause")],
    Discriminator(_bytes_form),
]
"""Bytes as one number, or by cause."""
