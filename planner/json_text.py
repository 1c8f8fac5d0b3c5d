"""Strict JSON: finite numbers of at most 64 bits, no key twice in one object."""

from __future__ import annotations

import json
import math
from typing import Any

from planner.errors import BadInputError

Json = Any
"""A JSON value. Documents are untyped only between the readers and the pydantic model that validates them."""


def parse_json(text: str, name: str) -> Json:
    """Strict JSON: finite numbers of at most 64 bits, no key twice in an object. Raises BadInputError."""

    def no_constant(word: str) -> Json:
        raise BadInputError(f"{name} holds {word}; numbers must be finite", code="not_finite")

    def finite(digits: str) -> float:
        number = float(digits)
        if math.isinf(number):
            raise BadInputError(f"{name} holds {digits[:40]}, which overflows a 64-bit float", code="not_finite")
        return number

    def integer(digits: str) -> int:
        if len(digits) > 20 or not is_64_bit(int(digits)):
            raise BadInputError(f"{name} holds {digits[:40]}, {TOO_WIDE}", code="out_of_range")
        return int(digits)

    def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        mapping = dict(pairs)
        if len(mapping) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise BadInputError(f'{name} has the key "{key[:80]}" twice in one object', code="duplicate_id")
                seen.add(key)
        return mapping

    try:
        return json.loads(
            text, parse_constant=no_constant, parse_float=finite, parse_int=integer, object_pairs_hook=unique
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadInputError(f"{name} is not JSON: {error.msg} ({where})", code="not_json") from None


def is_64_bit(number: int) -> bool:
    """Whether canonical JSON can hold the integer."""
    return -(2**63) <= number < 2**64


TOO_WIDE = "which no 64-bit integer holds; write it as a float"
