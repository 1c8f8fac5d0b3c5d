"""A field's value for people: with its unit where the field's name says one."""

from __future__ import annotations

import json
import re

from planner.printable import printable

_UNIT = re.compile(r"((.+_)?bytes|.+(?<!_per)_(?P<time>s))(_per_(?P<per>[a-z_]+))?")
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def quantity(path: str, value: object, digits: int = 6) -> str:
    """A value of the field at a path; ``-`` if it is absent.

    A number whose field's name ends in seconds or bytes, or in those per something, has that unit, in the size that
    suits it, to so many significant digits.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shown(value)
    named = _named(path)
    if named is None:
        return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
    sizes = _TIMES if named["time"] else _BYTES
    size, unit = next((size for size in sizes if abs(value) >= size[0]), (1.0, "s" if named["time"] else "B"))
    per = f"/{named['per'].replace('_', ' ')}" if named["per"] else ""
    return f"{value / size:.{digits}g} {unit}{per}"


def _named(path: str) -> re.Match[str] | None:
    """What the field's name says: elements of a list are called as it is, and so are bytes by cause."""
    names = [name for name in path.split(".") if not name.isdecimal() and name != "*"]
    own = _UNIT.fullmatch(names[-1]) if names else None
    holder = _UNIT.fullmatch(names[-2]) if own is None and len(names) > 1 else None
    return own or (holder if holder and not holder["time"] and not holder["per"] else None)


def shown(value: object) -> str:
    """A value as a line can hold it: text as it is, else as JSON; ``-`` if it is absent."""
    if value is None:
        return "-"
    if isinstance(value, float):
        text = f"{value:.9g}"
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = printable(text)
    return text if len(text) <= 60 else text[:57] + "..."
