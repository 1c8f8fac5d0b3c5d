"""The answers: what solving gave at each value, and the intervals in which one decision holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.difference import Change
from planner.errors import PlanError
from planner.json_text import Json
from planner.paper import Warned
from planner.sensitivity.course import Course
from planner.sensitivity.movement import Movement, Number


@dataclass(frozen=True)
class Outcome:
    """What solving gave: a plan, or the ``error`` that says why there is none.

    ``changes`` are the decisions, and ``metrics`` the figures, that differ from those they are compared with; ``gap``
    is how far the objective, in ``unit``, may be from the best possible, ``method`` what found it. ``warnings`` are
    those that the others do not have.
    """

    error: PlanError | None = None
    objective: float | None = None
    unit: str = ""
    gap: float | None = None
    method: str | None = None
    changes: tuple[Change, ...] = ()
    metrics: tuple[Change, ...] = ()
    warnings: tuple[Warned, ...] = ()


@dataclass(frozen=True)
class Again:
    """The plan's own problem solved again, by its method, seed and effort.

    ``outcome.changes`` are against the plan: none if it came out again. ``parts`` is how many values a decision holds;
    ``planner`` and ``version`` are the plan's planner and solver where they are not today's. ``other`` says why what
    was solved is not the plan's problem, where its costs, derived again, are others.
    """

    outcome: Outcome
    objective: float
    paper: str
    parts: int
    planner: str | None
    version: str | None
    other: str | None = None

    @property
    def unit(self) -> str:
        """That of the objective."""
        return self.outcome.unit

    def ratio(self, other: Outcome) -> float | None:
        """Another objective over this one; None where there is none, or it is a different quantity."""
        comparable = other.objective is not None and other.unit == self.unit and self.objective != 0
        return other.objective / self.objective if comparable and other.objective is not None else None

    def as_object(self) -> dict[str, Json]:
        """For a program."""
        return {
            "reproduced": not self.outcome.changes,
            "changes": _changes(self.outcome.changes),
            "objective": self.objective,
            "unit": self.unit,
            "gap": self.outcome.gap,
            "method": self.outcome.method,
            "parts": self.parts,
            "other_problem": self.other,
        }


@dataclass(frozen=True)
class Point:
    """One value, or factor. ``decision`` numbers what is decided there, 0 as at the plan's own."""

    value: Number
    decision: int
    outcome: Outcome

    def as_object(self, start: Number) -> dict[str, Json]:
        """For a program; per cent are of ``start``, the plan's own value."""
        outcome = self.outcome
        return {
            "value": self.value,
            "percent": percent_moved(start, self.value),
            "decision": self.decision,
            "objective": outcome.objective,
            "gap": outcome.gap,
            "method": outcome.method,
        }


@dataclass(frozen=True)
class Interval:
    """Neighbouring points that decide the same, ascending; what lies between two intervals was not tried."""

    points: tuple[Point, ...]

    @property
    def first(self) -> Point:
        """The lowest value."""
        return self.points[0]

    @property
    def last(self) -> Point:
        """The highest value."""
        return self.points[-1]

    @property
    def decision(self) -> int:
        """What is decided in it."""
        return self.first.decision

    def ends(self, start: Number) -> dict[str, Json]:
        """From where to where, as values and in per cent of ``start``, the plan's own."""
        return {
            "from": self.first.value,
            "to": self.last.value,
            "from_percent": percent_moved(start, self.first.value),
            "to_percent": percent_moved(start, self.last.value),
        }

    def as_object(self, start: Number) -> dict[str, Json]:
        """For a program."""
        error = self.first.outcome.error
        return {
            **self.ends(start),
            "decision": self.decision,
            "objective_from": self.first.outcome.objective,
            "objective_to": self.last.outcome.objective,
            "error": error.as_object() if error else None,
        }


@dataclass(frozen=True)
class AtValue:
    """The answer to PATH=VALUE; ``old`` is None where the field was not set."""

    path: str
    old: Json
    new: Json
    again: Again
    outcome: Outcome

    @property
    def ratio(self) -> float | None:
        """New objective over old; None where there is none, or it is a different quantity."""
        return self.again.ratio(self.outcome)

    def as_object(self) -> dict[str, Json]:
        """For a program."""
        outcome = self.outcome
        return {
            "path": self.path,
            "old": self.old,
            "new": self.new,
            "again": self.again.as_object(),
            "objective": outcome.objective,
            "unit": outcome.unit,
            "ratio": self.ratio,
            "gap": outcome.gap,
            "method": outcome.method,
            "error": outcome.error.as_object() if outcome.error else None,
            "decisions": _changes(outcome.changes),
            "metrics": _changes(outcome.metrics),
            "warnings": [vars(warned) for warned in outcome.warnings],
        }


@dataclass(frozen=True)
class OverRange:
    """The answer to a movement. ``home`` is the interval of the plan's own value: the range where the plan holds.

    Values are those of the number moved; where ``scaled_numbers`` says how many move together, they are the factor that
    scales them, 1 in the plan. ``complete`` is False where the solves ended before every switching value was located.
    """

    movement: Movement
    scaled_numbers: int | None
    course: Course
    again: Again
    intervals: tuple[Interval, ...]
    home: int
    complete: bool

    @property
    def points(self) -> tuple[Point, ...]:
        """Every value that was solved, ascending."""
        return tuple(point for interval in self.intervals for point in interval.points)

    def ends_early(self, side: int) -> bool:
        """Whether below (-1) or above (1) values end before the movement does."""
        return any((stop.value - self.course.start) * side > 0 for stop in self.course.stops)

    def as_object(self) -> dict[str, Json]:
        """For a program; ``decisions`` are by their numbers, each the changes against decision 0."""
        holds, start = self.intervals[self.home], self.course.start
        outcomes = {point.decision: point.outcome for point in self.points}
        return {
            "path": self.movement.path,
            "movement": self.movement.text,
            "moves": "value" if self.scaled_numbers is None else "factor",
            "numbers": self.scaled_numbers or 1,
            "old": start,
            "again": self.again.as_object(),
            "holds": {
                **holds.ends(start),
                "changes_below": self.home > 0,
                "changes_above": self.home < len(self.intervals) - 1,
            },
            "ends_early": {"below": self.ends_early(-1), "above": self.ends_early(1)},
            "intervals": [interval.as_object(start) for interval in self.intervals],
            "decisions": [_changes(outcomes[decision].changes) for decision in sorted(outcomes)],
            "points": [point.as_object(start) for point in self.points],
            "not_valid": [vars(refused) for refused in (*self.course.stops, *self.course.skipped)],
            "complete": self.complete,
        }


def percent_moved(start: Number, value: Number) -> float | None:
    """How far a value is from the plan's own, in per cent of that; None where that is 0."""
    return (value - start) / abs(start) * 100 if start else None


def _changes(changes: Sequence[Change]) -> list[dict[str, Json]]:
    return [{"path": change.path, "old": change.old, "new": change.new} for change in changes]
