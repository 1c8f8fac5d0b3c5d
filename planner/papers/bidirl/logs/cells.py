"""Cells of published tables: numbers with thousands commas, ranges, lists, what was not measured."""

from __future__ import annotations

import re
from typing import NamedTuple

from planner.csv_rows import Wrong, shown

ABSENT = frozenset({"", "-", "\\", "n/a", "N/A", "–"})
"""Not run in that mode, or not measured. A zero is a value."""

_NUMBER = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]{1,15}(?:\.[0-9]+)?")
_BESIDE = re.compile(r"\s*[(（][+-]?[0-9.]{1,9}\s?%[)）]$")
"""A change in parentheses, of either width."""
_SECONDS = re.compile(r"([0-9]{1,9}(?:\.[0-9]+)?)(?:-([0-9]{1,9}(?:\.[0-9]+)?))?\s?s")
_LIST = re.compile(r"\[([^\[\]]*)\]")


class Range(NamedTuple):
    """Seconds from and to; the same where one was written."""

    low_s: float
    high_s: float


def number_of(text: str, column: str, wrong: Wrong) -> float | None:
    """A number, thousands set off by commas, a change beside it passed over; None where it is absent."""
    if text in ABSENT:
        return None
    bare = _BESIDE.sub("", text)
    if not _NUMBER.fullmatch(bare):
        raise wrong(f"expected {column}, a number, got {shown(text)}", "wrong_type")
    return float(bare.replace(",", ""))


def given_number(text: str, column: str, wrong: Wrong) -> float:
    """A number that has to be there."""
    found = number_of(text, column, wrong)
    if found is None:
        raise wrong(f"expected {column}, a number, got {shown(text)}", "missing_field")
    return found


def whole_of(text: str, column: str, wrong: Wrong) -> int:
    """A whole number, thousands set off by commas."""
    found = given_number(text, column, wrong)
    if found != int(found):
        raise wrong(f"expected {column}, a whole number, got {shown(text)}", "wrong_type")
    return int(found)


def seconds_range(text: str, column: str, wrong: Wrong) -> Range | None:
    """``12.0-13.0 s`` or ``0.12s``, bold or not; None where it is absent."""
    bare = text.replace("*", "").strip()
    if bare in ABSENT:
        return None
    found = _SECONDS.fullmatch(bare)
    if found is None:
        raise wrong(f"expected {column}, seconds such as 3.9-4.9 s, got {shown(text)}", "wrong_type")
    low, high = float(found[1]), float(found[2] or found[1])
    if low > high:
        raise wrong(f"expected {column} from the less to the more, got {shown(text)}", "out_of_range")
    return Range(low, high)


def list_of(text: str, names: tuple[str, ...], column: str, wrong: Wrong) -> dict[str, int]:
    """``[32,1]`` by the names of its parts; those that are absent are left out."""
    found = _LIST.fullmatch(text)
    parts = [part.strip() for part in found[1].split(",")] if found else []
    if len(parts) != len(names):
        raise wrong(f"expected {column}, [{','.join(names)}], got {shown(text)}", "wrong_type")
    return {
        name: whole_of(part, f"{name} of {column}", wrong)
        for name, part in zip(names, parts, strict=True)
        if part not in ABSENT
    }
