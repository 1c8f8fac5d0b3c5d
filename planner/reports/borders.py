"""Where a decision holds: the sentence and the rows of a table."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from planner.difference import Change
from planner.reports.changes import shown
from planner.sensitivity.answers import Interval, OverRange, Point
from planner.units import amount

COLUMNS = ("value", "moved", "objective", "decision")
Row = tuple[str, str, str, str]
_CELL = 30
_FEW = 3
"""As many neighbours, each with another decision, are one row."""


def holds(answer: OverRange) -> str:
    """From where to where the decision holds."""
    home, last, start = answer.home, len(answer.intervals) - 1, answer.course.start
    run = answer.intervals[home]
    if home == 0 == last:
        return f"the decision holds over the whole range, {where(answer, run.first)} to {where(answer, run.last)}"
    if len(run.points) == 1:
        others = [answer.intervals[home - 1].last] if home > 0 else []
        others += [answer.intervals[home + 1].first] if home < last else []
        near = " and ".join(where(answer, point) for point in others)
        return f"the decision holds at no other value tried, the nearest {near}"
    low = _edge(answer, run.first, ends=home == 0, stopped=any(stop.value < start for stop in answer.course.stops))
    high = _edge(answer, run.last, ends=home == last, stopped=any(stop.value > start for stop in answer.course.stops))
    if not answer.movement.down:
        return f"the decision holds up to {high}"
    return f"the decision holds from {low} to {high}" if answer.movement.up else f"the decision holds down to {low}"


def _edge(answer: OverRange, point: Point, *, ends: bool, stopped: bool) -> str:
    """A border of the decision, or the end of the range, past which it may go on."""
    place = where(answer, point)
    if not ends or point.value == answer.course.start:
        return place
    return f"{place} (the end of what is valid)" if stopped else f"beyond {place}"


def where(answer: OverRange, point: Point) -> str:
    """A value as the question puts it: percentages to percentages."""
    if not answer.movement.relative:
        return f"{point.value:.6g}"
    return f"{_moved(answer, point)} %"


def _moved(answer: OverRange, point: Point) -> str:
    start = answer.course.start
    share = (point.value - start) / abs(start) * 100
    return f"{share:+.3g}" if share else "0"


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
            made.append(_row(answer, run.points, _decision(answer, run)))
    return made, home


def _row(answer: OverRange, points: Sequence[Point], decision: str) -> Row:
    ends = (points[0], points[-1])
    moved = "" if not answer.course.start else f"{_span([_moved(answer, point) for point in ends])} %"
    values = _span([f"{point.value:.5g}" for point in ends])
    return values, moved, _span([objective(point) for point in ends]), decision


def _span(ends: list[str]) -> str:
    """Both ends, a unit that they share said once."""
    (first, unit), (_, other) = (end.partition(" ")[::2] for end in ends)
    return ends[0] if ends[0] == ends[1] else f"{first if unit == other else ends[0]} .. {ends[1]}"


def objective(point: Point) -> str:
    """The objective of a point with its unit, ``-`` where there is no plan."""
    return "-" if point.outcome.objective is None else amount(point.outcome.objective, point.outcome.unit)


def _decision(answer: OverRange, run: Interval) -> str:
    outcome = run.first.outcome
    if outcome.error is not None:
        return f"{outcome.error.kind.replace('_', ' ')}: {outcome.error.code}"
    if run.decision == 0:
        return "as solved again" if answer.again.outcome.changes else "as planned"
    return in_a_cell(outcome.changes) or parts_differ(outcome.changes, answer.again.parts)


def in_a_cell(changes: tuple[Change, ...]) -> str:
    """All changes, where they are short enough for a table, else nothing."""
    text = ", ".join(f"{change.path} {shown(change.old)} -> {shown(change.new)}" for change in changes[:_CELL])
    return text if len(text) <= _CELL else ""


def parts_differ(changes: Sequence[Change], parts: int) -> str:
    """How much of a decision is another."""
    return f"{len(changes):,} of {max(len(changes), parts):,} parts differ"
