"""The words of a reason: forms that there are, and amounts of memory in them."""

from __future__ import annotations

import re

from planner.papers.layout.checks.decision import TOLERANCE
from planner.units import in_bytes

_PART = re.compile(
    r"(compute|communication|recompute|sharding|hops|bubble|reduction|update|fixed) \+[0-9.e-]+ %", re.ASCII
)
_LATER = re.compile(r"as fast and as large; [a-z_]+ comes later", re.ASCII)


def expected_words(reason: str, stated_bytes: float, chosen_bytes: float, *, on_front: bool) -> str | None:
    """What a reason should have said of a layout that loses; None where it is one that it may say.

    Peaks are those that the plan states. Which part of the step grew most, and by how much, is not asked.
    """
    saved_bytes = chosen_bytes - stated_bytes
    said = f"; {in_bytes(saved_bytes)} less" if on_front and saved_bytes > 0 else ""
    if not reason.endswith(said):
        return f'an end of "{said}"'
    why = reason.removesuffix(said)
    if why.startswith("as fast;"):
        more = f"as fast; {in_bytes(-saved_bytes)} more"
        return None if why == more else f'"{more}"'
    if why.startswith("as fast"):
        larger = -saved_bytes > TOLERANCE * chosen_bytes
        return None if _LATER.fullmatch(why) and not larger else "the memory that it takes more, or the later decision"
    return None if _PART.fullmatch(why) else 'a part of the step and its growth, as in "bubble +7.00 %"'
