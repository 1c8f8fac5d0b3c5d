"""The words of a reason: forms that there are, and amounts of memory in them."""

from __future__ import annotations

import re

from planner.papers.layout.checks.decision import TOLERANCE
from planner.papers.layout.solution import Alternative, LayoutSolution
from planner.units import in_bytes

_PART = re.compile(
    r"(compute|communication|recompute|sharding|hops|bubble|reduction|update|fixed)(?P<growth> \+[0-9.e-]+ %)?",
    re.ASCII,
)
_LATER = re.compile(r"as fast and as large; [a-z_]+ comes later", re.ASCII)


def expected_words(row: Alternative, chosen: LayoutSolution, *, on_front: bool) -> str | None:
    """What the reason of a layout that loses should have said; None where it is one that it may say.

    Peaks are those that the plan states. Which part of the step grew most, and by how much, is not asked; of a step
    that takes no time nothing is a share.
    """
    reason, chosen_bytes = row.reason, chosen.peak_memory_bytes
    saved_bytes = chosen_bytes - row.peak_memory_bytes
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
    part = _PART.fullmatch(why)
    if part is not None and (part["growth"] is None) == (chosen.step_time_s == 0):
        return None
    return 'a part of the step and its growth, as in "bubble +7.00 %"'
