"""What is asked about a path: ``PATH=VALUE``, ``PATH=±N`` or ``PATH=±X%``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from planner.errors import BadInputError
from planner.fields import parse_setting
from planner.json_text import Json

OPTION = "--what-if"
_FORMS = "PATH=VALUE, or PATH=±N or PATH=±X% with N and X above 0 (±, +- or one sign; -N alone is a value)"
_NUMBER = r"(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?"
_MOVEMENT = re.compile(rf"(?P<sign>±|\+-|\+|-) *(?P<amount>{_NUMBER}) *(?P<percent>%?)")
_NO_MOVEMENT = re.compile(rf"(±|\+-).*|{_NUMBER} *%")
"""What nobody means as a value."""
_UNREAD = ("paper", "format_version", "notes")
"""Fields that are no quantity of the problem."""

Number = int | float


@dataclass(frozen=True)
class Setting:
    """One field set to one value."""

    path: str
    value: Json


@dataclass(frozen=True)
class Movement:
    """What moves by up to ``amount``, or ``amount`` percent, ``down`` or ``up`` or both; ``text`` as given."""

    path: str
    text: str
    amount: float
    relative: bool
    down: bool
    up: bool


def parse_what_if(text: str) -> Setting | Movement:
    """Read PATH=VALUE, PATH=±N or PATH=±X%. What --set would take as a number is a value. Raises BadInputError."""
    path, separator, asked = text.partition("=")
    asked = asked.strip()
    found = _MOVEMENT.fullmatch(asked)
    if not separator or not path or (found is None and _NO_MOVEMENT.fullmatch(asked)):
        raise BadInputError(f'expected {_FORMS}, got "{text[:200]}"', code="wrong_type", where=OPTION)
    _refuse_unread(path)
    if found is None or (found["sign"] == "-" and not found["percent"]):
        return Setting(*parse_setting(text, OPTION))
    amount = float(found["amount"])
    if amount == 0 or math.isinf(amount):
        code = "out_of_range" if amount == 0 else "not_finite"
        raise BadInputError(
            f'expected a movement above 0 that a 64-bit float holds, got "{asked[:80]}"', code=code, where=path
        )
    sign = found["sign"]
    return Movement(path, asked, amount, bool(found["percent"]), down=sign != "+", up=sign != "-")


def _refuse_unread(path: str) -> None:
    top = path.split(".")[0]
    if top in _UNREAD:
        raise BadInputError(
            f'"{top}" is no quantity of the problem: no decision follows from it', code="out_of_range", where=path
        )
