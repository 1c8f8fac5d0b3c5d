"""Whether a profile and a cluster are of one device, as far as their names tell."""

from __future__ import annotations

import re

_CHIP = re.compile(r"[A-Za-z]+[0-9]{2,}[A-Za-z]*")
"""The word of a device's name that tells it: H100, A6000, L40S, MI300X."""


def differ(one: str | None, other: str | None) -> bool:
    """Whether two names are of different devices; not where one is unknown or tells no chip."""
    first, second = _chip(one), _chip(other)
    return first is not None and second is not None and first != second


def _chip(name: str | None) -> str | None:
    words = re.split(r"[^A-Za-z0-9]+", name or "")
    return next((word.upper() for word in words if _CHIP.fullmatch(word)), None)
