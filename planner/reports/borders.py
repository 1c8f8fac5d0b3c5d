"""Where a decision holds: the sentence and the rows of a table."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from planner.difference import Change
from planner.reports.quantity import quantity
from planner.sensitivity.answers import Interval, OverRange, Point, percent_moved
from planner.sensitivity.refused import Refused
from planner.units import amount

Row = tuple[str, str, str, str]
_CELL = 30
_FEW = 3
"""As many neighbours, each with another decision, are one row."""
_NAMED = 3
"""Parts that differ are named where the plan's decision ends."""


def holds(answer: OverRange) -> str:
    """From where to where the decision holds."""
    home, last = answer.home, len(answer.intervals) - 1
    run = answer.intervals[home]
    if home == 0 == last:
        low, high = _end(answer, run.first, -1), _end(answer, run.last, 1)
        early = answer.ends_early(-1) or answer.ends_early(1)
        return f"the decision holds {'wherever it was tried' if early else 'over the whole range'}, {low} to {high}"
    if len(run.points) == 1:
        others = [answer.intervals[home - 1].last] if home > 0 else []
        others += [answer.intervals[home + 1].first] if home < last else []
        near = " and ".join(where(answer, point) for point in others)
        return f"the decision holds at no other value tried, the nearest {near}"
    low = _edge(answer, run.first, -1) if home == 0 else where(answer, run.first)
    high = _edge(answer, run.last, 1) if home == last else where(answer, run.last)
    if not answer.movement.down:
        return f"the decision holds up to {high}"
    return f"the decision holds from {low} to {high}" if answer.movement.up else f"the decision holds down to {low}"


def _edge(answer: OverRange, point: Point, side: int) -> str:
    """An end of the range, past which the decision may go on."""
    open_end = point.value != answer.course.start and not answer.ends_early(side)
    return f"beyond {where(answer, point)}" if open_end else _end(answer, point, side)


def _end(answer: OverRange, point: Point, side: int) -> str:
    place = where(answer, point)
    return f"{place} (no valid value found {'below' if side < 0 else 'above'})" if answer.ends_early(side) else place


def where(answer: OverRange, point: Point | Refused) -> str:
    """A value as the question puts it: percentages to percentages."""
    if not answer.movement.relative:
        return quantity(answer.movement.path, point.value)
    return f"{_moved(answer, point)} %"


def _moved(answer: OverRange, point: Point | Refused) -> str:
    share = percent_moved(answer.course.start, point.value)
    if not share:
        return "0"
    return f"{share:+.3g}" if abs(share) < 1000 else f"{share:+,.0f}"


def columns(answer: OverRange) -> tuple[str, str, str, str]:
    """The names of the columns."""
    return "value" if answer.scaled_numbers is None else "factor", "moved", "objective", "decision"


def rows(answer: OverRange, *, everything: bool) -> tuple[list[Row], int]:
    """A row an interval, and which row is that of the plan's decision.

    Neighbours that each have another decision share a row unless everything is wanted.
    """
    made: list[Row] = []
    home = 0

    def alone(item: tuple[int, Interval]) -> bool:
        index, run = item
        return index != answer.home and len(run.points) == 1 and run.first.outcome.error is None

    crowded = isinstance(answer.course.start, float) and not everything
    for lonely, group in itertools.groupby(enumerate(answer.intervals), key=alone):
        members = list(group)
        if lonely and crowded and len(members) >= _FEW:
            points = [run.first for _, run in members]
            made.append(_row(answer, points, f"{len(points)} others"))
            continue
        for index, run in members:
            home = len(made) if index == answer.home else home
            made.append(_row(answer, run.points, _decision(answer, run, near=abs(index - answer.home) == 1)))
    return made, home


def _row(answer: OverRange, points: Sequence[Point], decision: str) -> Row:
    ends = (points[0], points[-1])
    moved = "" if not answer.course.start else f"{_span([_moved(answer, point) for point in ends])} %"
    path = "" if answer.scaled_numbers else answer.movement.path
    values = _span([quantity(path, point.value, 5) for point in ends])
    return values, moved, _span([objective(point) for point in ends]), decision


def _span(ends: list[str]) -> str:
    """Both ends, a unit that they share said once."""
    (first, unit), (_, other) = (end.partition(" ")[::2] for end in ends)
    return ends[0] if ends[0] == ends[1] else f"{first if unit == other else ends[0]} .. {ends[1]}"


def objective(point: Point) -> str:
    """The objective of a point with its unit, ``-`` where there is no plan."""
    return "-" if point.outcome.objective is None else amount(point.outcome.objective, point.outcome.unit)


def _decision(answer: OverRange, run: Interval, *, near: bool) -> str:
    outcome = run.first.outcome
    if outcome.error is not None:
        return f"{outcome.error.kind.replace('_', ' ')}: {outcome.error.code}"
    if run.decision == 0:
        return "as solved again" if answer.again.outcome.changes else "as planned"
    differ = parts_differ(outcome.changes, answer.again.parts)
    return in_a_cell(outcome.changes) or (f"{differ}: {_first_names(outcome.changes)}" if near else differ)


def _first_names(changes: Sequence[Change]) -> str:
    names = [change.path for change in changes[:_NAMED]]
    return ", ".join(names) + (", ..." if len(changes) > _NAMED else "")


def in_a_cell(changes: tuple[Change, ...]) -> str:
    """All changes, where they are short enough for a table, else nothing."""
    text = ", ".join(
        f"{change.path} {quantity(change.path, change.old)} -> {quantity(change.path, change.new)}"
        for change in changes[:_CELL]
    )
    return text if len(text) <= _CELL else ""


def parts_differ(changes: Sequence[Change], parts: int) -> str:
    """How much of a decision is another."""
    return f"{len(changes):,} of {max(len(changes), parts):,} parts differ"
