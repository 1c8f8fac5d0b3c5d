"""One change between two plans, as a person reads it."""

from __future__ import annotations

from planner.difference import Change
from planner.printable import printable
from planner.reports.quantity import quantity


def change_line(change: Change, *, markdown: bool = False) -> str:
    """A line of text, or a row of a markdown table; long values are cut."""
    old, new = (quantity(change.path, value, 9) for value in (change.old, change.new))
    both_numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (change.old, change.new))
    ratio = f" ({(change.new / change.old - 1):+.3%})" if both_numbers and change.old else ""
    if markdown:
        cells = (f"`{printable(change.path)}`", old, f"{new}{ratio}")
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    return f"  {printable(change.path)}: {old} -> {new}{ratio}"
