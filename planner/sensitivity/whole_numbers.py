"""The whole numbers on one side of a start that are worth a solve, and where they end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.errors import BadInputError
from planner.sensitivity.refused import Refusal, Refused

LOOKED_AT = 128
"""Integers of a wide range that are validated, evenly spaced, half of them on each of two sides."""


@dataclass(frozen=True)
class WholeNumbers:
    """Values to solve; where they end before they should, at most one stop; those skipped on the way."""

    values: list[int]
    stops: list[Refused]
    skipped: list[Refused]


def whole_numbers(start: int, end: float, count: int, refusal: Refusal, unposed: Refusal) -> WholeNumbers:
    """At most ``count`` valid values from ``start``, itself not among them, to ``end`` or as far as there are any.

    The last is one of them, and ``unposed`` is asked of that alone, and to find another last.
    """
    side = 1 if end > start else -1
    far = math.floor(abs(end - start))
    looked_at = [start + side * distance for distance in _evenly(far, LOOKED_AT // 2)]
    errors = {value: error for value in looked_at if (error := refusal(value)) is not None}
    valid = [value for value in looked_at if value not in errors]
    stop = None
    if looked_at and looked_at[-1] in errors:
        *_, before, last = start, *looked_at
        found = _nearest_valid(last, before, side, refusal)
        if found is None:
            near = valid[-1] if valid else start
            beyond = next(value for value in looked_at if (value - near) * side > 0)
            found, stop = _edge(near, beyond, errors[beyond], _middle, refusal)
        if found != (valid[-1] if valid else start):
            valid.append(found)
    if valid and (error := unposed(valid[-1])) is not None:
        valid, stop = _posed(start, valid, error, refusal, unposed)
    reach = abs((valid[-1] if valid else start) - start)
    skipped = [Refused.of(value, error) for value, error in errors.items() if abs(value - start) < reach]
    kept = [valid[position - 1] for position in _evenly(len(valid), count)]
    return WholeNumbers(kept, [stop] if stop else [], skipped)


def valid_between(low: int, high: int, refusal: Refusal) -> int | None:
    """The valid value that lies nearest to the middle of two, None where none is near it."""
    middle = (low + high) // 2
    offsets = (sign * size for size in range(LOOKED_AT // 2) for sign in (1, -1))
    inside = (middle + offset for offset in offsets if low < middle + offset < high)
    return next((value for value in inside if refusal(value) is None), None)


def _posed(
    start: int, valid: list[int], error: BadInputError, refusal: Refusal, unposed: Refusal
) -> tuple[list[int], Refused]:
    """The valid values that can be posed, up to the last such one, and the first that cannot."""
    low, high = -1, len(valid) - 1
    while high - low > 1:
        middle = (low + high) // 2
        found = unposed(valid[middle])
        low, high, error = (middle, high, error) if found is None else (low, middle, found)
    near = valid[low] if low >= 0 else start
    last, stop = _edge(near, valid[high], error, lambda a, b: valid_between(a, b, refusal), unposed)
    return valid[: low + 1] + [last] * (last != near), stop


def _nearest_valid(last: int, before: int, side: int, refusal: Refusal) -> int | None:
    """Where only some integers are valid, such as multiples, the last one may lie between two that were looked at."""
    distances = range(1, min(abs(last - before), LOOKED_AT // 2))
    return next((last - side * d for d in distances if refusal(last - side * d) is None), None)


def _edge(
    near: int, far: int, error: BadInputError, between: Callable[[int, int], int | None], refusal: Refusal
) -> tuple[int, Refused]:
    """The last value without a refusal, as far as bisection finds it, and the refused one past it."""
    while (middle := between(*sorted((near, far)))) is not None:
        found = refusal(middle)
        near, far, error = (middle, far, error) if found is None else (near, middle, found)
    return near, Refused.of(far, error)


def _middle(low: int, high: int) -> int | None:
    return (low + high) // 2 if high - low > 1 else None


def _evenly(last: int, count: int) -> list[int]:
    """At most ``count`` of 1..last, the last among them."""
    count = min(last, count)
    return sorted({-(-last * step // count) for step in range(1, count + 1)})
