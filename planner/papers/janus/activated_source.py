"""What the a_max of a plan rests on, in words: a table from windows of a trace, a stated table, or a closed form."""

from __future__ import annotations

from planner.papers.janus.costs import Activated, ActivatedBound, ActivatedTable
from planner.papers.janus.problem import SizingProblem
from planner.units import amount


def activated_of(problem: SizingProblem, device: str | None) -> Activated:
    """The a_max of a device of the problem, or its own."""
    own = next((entry.a_max for entry in problem.devices if entry.id == device), None)
    return own or problem.a_max


def windows_near(problem: SizingProblem, table: ActivatedTable, batch: float) -> int | None:
    """The fewest windows of one traced layer behind the grid's points about a batch; None where they are not known."""
    if table.windows is None:
        return None
    after = next((place for place, point in enumerate(table.batch_grid) if point >= batch), len(table.batch_grid) - 1)
    about = table.windows[max(0, after - 1) : after + 1]
    return min(about) // max(1, len(problem.layers))


def source_words(problem: SizingProblem, device: str | None, batch: float) -> str:
    """Which source of a_max is used for a batch."""
    a_max = activated_of(problem, device)
    if isinstance(a_max, ActivatedTable):
        near = windows_near(problem, a_max, batch)
        if near is None:
            return "table as stated"
        layers = len(problem.layers)
        traced = f" of each of {layers} layers" if layers > 1 else ""
        statistic = "" if a_max.statistic is None else f" ({a_max.statistic})"
        return f"table from {amount(near, 'windows' if near != 1 else 'window')}{traced}{statistic}"
    if isinstance(a_max, ActivatedBound):
        return a_max.kind.replace("_", " ")
    return "routing, not read yet"
