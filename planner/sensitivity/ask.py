"""The question answered: a sweep, then bisection between neighbours that decide differently."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from planner.errors import BadInputError
from planner.fields import find_places, set_field
from planner.json_text import Json
from planner.plan import Plan
from planner.sensitivity.answers import AtValue, Interval, OverRange, Point
from planner.sensitivity.course import Course, course
from planner.sensitivity.movement import Movement, Number, Setting, parse_what_if
from planner.sensitivity.quantities import quantities_at
from planner.sensitivity.source import Source, source_of
from planner.sensitivity.trials import Trials, solve_again, solve_changed
from planner.validation import expects_list
from planner.verification import require_true

_SWEEP_SHARE = 0.6

Progress = Callable[[float, str], None]
"""Told the share that is done, 0 to 1, and what is done."""


def what_if(plan: Plan, question: str, progress: Progress | None = None) -> AtValue | OverRange:
    """Answer PATH=VALUE, PATH=±N or PATH=±X% about a plan. The same question always gets the same answer.

    Raises RefutedError for a plan that is not true, BadInputError for a question that makes no sense or a value that
    is not valid or has no price, and InfeasibleError or LimitError if the plan's own problem cannot be solved again.
    """
    require_true(plan)
    wanted = parse_what_if(question)
    tell = progress or (lambda _done, _what: None)
    tell(0.0, "what is asked about")
    source = source_of(plan, wanted.path)
    if isinstance(wanted, Setting):
        return _at_value(plan, source, wanted, tell)
    return _over_range(plan, source, wanted, tell)


def _at_value(plan: Plan, source: Source, wanted: Setting, tell: Progress) -> AtValue:
    document = source.fresh()
    value = wanted.value
    scalar = value is not None and not isinstance(value, list | dict)
    set_field(document, wanted.path, [value] if scalar and expects_list(source.model, wanted.path) else value)
    refused = source.unposed(document)  # refused before any solve
    if refused is not None:
        raise refused
    tell(0.0, "as it is")
    options, base, again = solve_again(plan, source)
    tell(0.5, "changed")
    outcome, _ = solve_changed(source, document, options, base)
    return AtValue(wanted.path, _present(source, wanted.path), wanted.value, again, outcome)


def _present(source: Source, path: str) -> Json:
    try:
        return find_places(source.fresh(), path)[0].value
    except BadInputError:
        return None


def _over_range(plan: Plan, source: Source, wanted: Movement, tell: Progress) -> OverRange:
    quantities_at(source.fields(), wanted)  # what is not set is told from what is unknown
    document = source.fresh()
    quantities = quantities_at(document, wanted)
    start = quantities.start

    def refusal(value: Number) -> BadInputError | None:
        quantities.move(value)
        return source.refusal(document)

    def unposed(value: Number) -> BadInputError | None:
        quantities.move(value)
        return source.unposed(document)

    way = course(wanted, start, refusal, unposed)
    tell(0.0, "as it is")
    options, base, again = solve_again(plan, source)
    trials = Trials(source, document, quantities, options, base)
    intervals = search(trials, way, tell)
    home = next(i for i, run in enumerate(intervals) if run.first.value <= start <= run.last.value)
    return OverRange(wanted, quantities.scaled_numbers, way, again, intervals, home, not trials.stopped)


def search(trials: Trials, way: Course, tell: Progress) -> tuple[Interval, ...]:
    """The intervals of one decision each, ascending."""
    swept = []
    for done, value in enumerate(way.values):
        tell(_SWEEP_SHARE * done / len(way.values), f"at {value:.6g}")
        swept.append(trials.at(value))
    _locate(trials, way, swept, tell)
    points = [trials.points[value] for value in sorted(trials.points)]
    return tuple(Interval(tuple(run)) for _, run in itertools.groupby(points, key=lambda point: point.decision))


def _locate(trials: Trials, way: Course, swept: list[Point], tell: Progress) -> None:
    """Look for the switching values between swept ones, those nearest to the field's own value first."""
    settled = _settled(swept, way.start)
    pairs = [pair for pair in itertools.pairwise(swept) if pair[0].decision != pair[1].decision]
    outward = [(low, high) if low.value >= way.start else (high, low) for low, high in pairs]
    outward.sort(key=lambda pair: (abs(pair[0].value - way.start), pair[0].value))
    for done, (near, far) in enumerate(outward):
        share = _SWEEP_SHARE + (1 - _SWEEP_SHARE) * done / len(outward)
        tell(share, f"between {near.value:.6g} and {far.value:.6g}")
        if near.value in settled:
            near = _border(trials, way, near, far)
        if far.value in settled and near.decision != far.decision:
            _border(trials, way, far, near)


def _settled(swept: list[Point], start: Number) -> set[Number]:
    """The swept values of runs worth a border: the field's own, and others of two or more points.

    Elsewhere every value has another decision, and a border between two of them says nothing.
    """
    runs = [[point.value for point in run] for _, run in itertools.groupby(swept, key=lambda point: point.decision)]
    return {value for run in runs if len(run) > 1 or start in run for value in run}


def _border(trials: Trials, way: Course, inside: Point, outside: Point) -> Point:
    """Bisect; the nearest value found from ``inside`` on at which another decision is made."""
    while (middle := way.between(*sorted((inside.value, outside.value)))) is not None and trials.within_budget():
        point = trials.at(middle)
        inside, outside = (point, outside) if point.decision == inside.decision else (inside, point)
    return outside
