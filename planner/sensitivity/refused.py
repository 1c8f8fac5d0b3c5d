"""Values that a movement leads to and a problem cannot have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from planner.errors import BadInputError
from planner.sensitivity.movement import Number

Refusal = Callable[[Number], BadInputError | None]
"""Why there is no problem with this value, None if there is."""


@dataclass(frozen=True)
class Refused:
    """A value without a problem."""

    value: Number
    code: str
    message: str
    where: str | None

    @classmethod
    def of(cls, value: Number, error: BadInputError) -> Self:
        """A value, and why there is no problem with it."""
        return cls(value, error.code, error.message, error.where)
