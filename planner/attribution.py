"""Where a number of a problem comes from: bytes by cause, seconds by source. For readers, never for the search."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.validation import Document, fault

Causes = dict[Annotated[str, Field(min_length=1, max_length=60)], Annotated[float, Field(ge=0, le=1e24)]]
"""Bytes by cause."""

Caution = Literal["narrow_dtype_slower", "cache_rows_stand_in"]
Said = dict[Caution, Annotated[str, Field(min_length=1, max_length=400)]]
"""What the reader of a plan should know of prices: warnings by code."""

ROUNDING = 1e-6
"""How far parts may sum to something else than their whole, relative."""


class Sources(Document):
    """Shares of a time by source; they sum to 1."""

    measured: float = Field(default=0.0, ge=0, le=1 + 1e-9, description="by rows of a cost table")
    interpolated: float = Field(default=0.0, ge=0, le=1 + 1e-9, description="between rows")
    modelled: float = Field(default=0.0, ge=0, le=1 + 1e-9, description="by a model")
    stated: float = Field(default=0.0, ge=0, le=1 + 1e-9, description="by who wrote the problem")

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        total = self.measured + self.interpolated + self.modelled + self.stated
        if abs(total - 1) > ROUNDING:
            raise fault(f"expected shares that sum to 1, got {total:.9g}")
        return self


def parts_of(causes: Causes | None, whole: float | None) -> Causes | None:
    """Bytes by cause in the same proportions, of ``whole``: as they are where they sum to it, None where all are 0."""
    if causes is None or whole is None:
        return None
    total = math.fsum(causes.values())
    if abs(total - whole) <= ROUNDING * max(whole, 1.0):
        return causes
    return {cause: amount * (whole / total) for cause, amount in causes.items()} if total else None
