"""How long a run took, as tables write it: ``1d 3h 43m``, ``19h18m``, ``22.79 h``, often with a change beside it."""

from __future__ import annotations

import re

from planner.csv_rows import Wrong, shown
from planner.papers.bidirl.logs.cells import ABSENT

_PARTS = re.compile(r"(?:([0-9]{1,4})d)?\s?(?:([0-9]{1,3})h)?\s?(?:([0-9]{1,3})m)?")
_HOURS = re.compile(r"([0-9]{1,6}(?:\.[0-9]+)?) h")
_BESIDE = re.compile(r"\s*(?:/\s*)?[(（][+-]?[0-9.]{1,9}\s?[x%][)）]$")
"""A speed-up or a change, in parentheses of either width, on a line of its own or not."""
_DAY_S, _HOUR_S, _MINUTE_S = 86_400.0, 3_600.0, 60.0


def duration_s(text: str, column: str, wrong: Wrong) -> float | None:
    """Seconds; None where it is absent."""
    if text in ABSENT:
        return None
    bare = _BESIDE.sub("", text)
    if hours := _HOURS.fullmatch(bare):
        return float(hours[1]) * _HOUR_S
    found = _PARTS.fullmatch(bare)
    if found is None or not any(found.groups()):
        raise wrong(f"expected {column}, a duration such as 1d 3h 43m, got {shown(text)}", "wrong_type")
    days, whole_hours, minutes = (int(part or 0) for part in found.groups())
    return days * _DAY_S + whole_hours * _HOUR_S + minutes * _MINUTE_S
