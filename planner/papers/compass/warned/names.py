"""Operators in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from planner.papers.compass.problem import Operator


def names(operators: Sequence[Operator]) -> str:
    """The first three by id, and how many more."""
    first = ", ".join(operator.id for operator in operators[:3])
    return first if len(operators) <= 3 else f"{first} and {len(operators) - 3} more"


def either(degrees: Sequence[int]) -> str:
    """Degrees as alternatives."""
    return " or ".join(str(degree) for degree in degrees)
