"""What a movement moves: a number by its value, or several numbers by one factor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from planner.errors import BadInputError
from planner.fields import Place, find_places
from planner.json_text import Json
from planner.sensitivity.movement import Movement, Number

_SECONDS = re.compile(r".+(?<!_per)_s(_per_.+)?")
_BYTES = re.compile(r".+(?<!_per)_bytes(_per_.+)?")
"""Names that say a unit; ``bytes_per_s`` is no time."""


@dataclass(frozen=True)
class Quantities:
    """Numbers of a document that move together, with what the plan has there.

    ``scaled``: by a factor that is 1 in the plan, else it is one number, moved by its own value.
    """

    places: tuple[Place, ...]
    planned: tuple[Number, ...]
    scaled: bool

    @property
    def start(self) -> Number:
        """What is moved, as it is in the plan: the factor or the number."""
        return 1.0 if self.scaled else self.planned[0]

    @property
    def scaled_numbers(self) -> int | None:
        """How many numbers one factor scales; None where a number moves by its value."""
        return len(self.planned) if self.scaled else None

    def move(self, value: Number) -> None:
        """Put the numbers where the factor, or the value, leads, in the document they were found in."""
        for place, number in zip(self.places, self.planned, strict=True):
            place.put(number * value if self.scaled else value)


def quantities_at(document: Json, movement: Movement) -> Quantities:
    """What a movement moves: the number at its path; or the numbers of lists, seconds of objects, bytes by cause.

    Zeros do not scale and are left out. Raises BadInputError if nothing can be moved, or not by this movement.
    """
    path = movement.path
    places = find_places(document, path)
    numbers = [number for place in places for number in _numbers_of(place)]
    scaled = [number.path for number in numbers] != [path]
    if scaled and any(isinstance(number.value, int) for number in numbers):
        raise _refusal("whole numbers do not scale together; move one of them", path)
    if scaled and not movement.relative:
        raise _refusal("several numbers move by a share of each, not all by the same amount; say ±X%", path)
    moved = tuple(number for number in numbers if number.value != 0 or not movement.relative)
    if not moved:
        hint = "" if scaled else "; say ±N"
        raise BadInputError(f"0 has no percentage{hint}", code="out_of_range", where=path)
    return Quantities(moved, tuple(number.value for number in moved), scaled)


def _numbers_of(place: Place) -> list[Place]:
    """The quantities that a place stands for."""
    if _is_number(place.value):
        return [place]
    alike = isinstance(place.value, list) or _BYTES.fullmatch(str(place.key))
    inside = list(place.inside())
    if alike and inside and all(_is_number(part.value) for part in inside):
        return inside
    found = list(_seconds(place))
    if not found:
        raise _refusal(
            f"expected a number, a list of numbers, or an object that holds seconds, got {_kind(place.value)}",
            place.path,
        )
    return found


def _seconds(place: Place, named: bool = False) -> Iterator[Place]:
    """All numbers below whose name, or that of what holds them, says seconds."""
    named = named or (isinstance(place.key, str) and _SECONDS.fullmatch(place.key) is not None)
    if named and _is_number(place.value):
        yield place
    for part in place.inside():
        yield from _seconds(part, named)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refusal(message: str, path: str) -> BadInputError:
    return BadInputError(message, code="wrong_type", where=path)


def _kind(value: Json) -> str:
    if isinstance(value, dict):
        return f"an object (its fields: {', '.join(sorted(value)[:12])})"
    if isinstance(value, list):
        return f"a list of {len(value)}" + (f", the first {_kind(value[0])}" if value else "")
    if value is None:
        return "a field that is not set; give it a value with PATH=VALUE"
    return "a boolean" if isinstance(value, bool) else "a number" if _is_number(value) else "a string"
