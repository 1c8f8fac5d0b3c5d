"""One change between two plans, as a person reads it."""

from __future__ import annotations

from planner.difference import Change
from planner.printable import printable


def change_line(change: Change, *, markdown: bool = False) -> str:
    """A line of text, or a row of a markdown table; long values are cut."""
    old, new = shown(change.old), shown(change.new)
    both_numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (change.old, change.new))
    ratio = f" ({(change.new / change.old - 1):+.3%})" if both_numbers and change.old else ""
    if markdown:
        cells = (f"`{printable(change.path)}`", old, f"{new}{ratio}")
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    return f"  {printable(change.path)}: {old} -> {new}{ratio}"


def shown(value: object) -> str:
    """A value as a line can hold it; ``-`` if it is absent."""
    if value is None:
        return "-"
    text = f"{value:.9g}" if isinstance(value, float) else str(value)
    text = printable(text)
    return text if len(text) <= 60 else text[:57] + "..."
