"""The terminal view of what follows if a number of a plan's problem were another."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from planner import console
from planner.difference import Change
from planner.printable import printable
from planner.reports import borders
from planner.reports.borders import parts_differ, where
from planner.reports.changes import change_line
from planner.reports.quantity import quantity
from planner.sensitivity.answers import Again, AtValue, Outcome, OverRange, Point
from planner.units import amount, percent

_CHANGES_SHOWN = 5
_ROWS_SHOWN = 20


def print_what_if(answer: AtValue | OverRange, *, everything: bool = False) -> None:
    """A sentence first, then what changes, then how far to trust it; ``everything`` cuts no list."""
    if isinstance(answer, AtValue):
        _print_value(answer, everything)
        notes = _about(answer.again, [answer.outcome])
    else:
        _print_range(answer, everything)
        notes = _about_range(answer)
    for index, note in enumerate(notes):
        if index == 0:
            console.say()
        _say(note)


def _print_value(answer: AtValue, everything: bool) -> None:
    outcome, again = answer.outcome, answer.again
    old = "not set in the plan" if answer.old is None else f"{quantity(answer.path, answer.old, 9)} in the plan"
    new = "null" if answer.new is None else quantity(answer.path, answer.new, 9)
    asked = f"{again.paper}: with {answer.path} = {new} ({old})"
    if outcome.error is not None:
        _say(f"{asked} there is no plan")
        _print_error(outcome)
        return
    decided = parts_differ(outcome.changes, again.parts) if outcome.changes else "the decision stays"
    _say(f"{asked} {decided} and the objective {_goes(again, outcome)}")
    for title, changes in (("decisions", outcome.changes), ("metrics", outcome.metrics)):
        if changes:
            console.say(f"{title}: {len(changes)} changed")
            _print_changes(changes, everything)
    for warned in outcome.warnings:
        _say(f"warning: {warned.code}: {warned.message}", indent="  ")


def _goes(again: Again, outcome: Outcome) -> str:
    old = amount(again.objective, again.unit)
    return f"stays {old}" if again.ratio(outcome) == 1 else f"goes from {old} to {_beside(again, outcome)}"


def _beside(again: Again, outcome: Outcome) -> str:
    """Another objective, and by how much it is another."""
    ratio = again.ratio(outcome)
    if ratio == 1:
        return "the same"
    objective = "-" if outcome.objective is None else amount(outcome.objective, outcome.unit)
    return objective if ratio is None else f"{objective} ({(ratio - 1) * 100:+.3g} %)"


def _print_range(answer: OverRange, everything: bool) -> None:
    _say(f"{answer.again.paper}: {borders.holds(answer)}")
    _say(f"{_what_moves(answer)}, {len(answer.points)} values solved")
    console.say()
    rows, home = borders.rows(answer, everything=everything)
    shown_rows = len(rows) if everything else _ROWS_SHOWN
    first = max(0, min(home - shown_rows // 2, len(rows) - shown_rows))
    console.print_table(borders.columns(answer), rows[first : first + shown_rows])
    if len(rows) > shown_rows:
        console.say(f"and {len(rows) - shown_rows} more (--all)")
    for point in _worth_telling(answer):
        if everything or point.outcome.error is not None or not borders.in_a_cell(point.outcome.changes):
            _print_other(answer, point, everything)


def _what_moves(answer: OverRange) -> str:
    movement, numbers = answer.movement, answer.scaled_numbers
    if numbers is None:
        start = quantity(movement.path, answer.course.start, 9)
        return f"{movement.path} is {start} in the plan; moved by {movement.text}"
    return f"{movement.path} moved by {movement.text}: scales {numbers:,} number{'s' if numbers > 1 else ''}"


def _worth_telling(answer: OverRange) -> Iterator[Point]:
    """On each side, where the plan's decision gives way, and where one begins that holds for more than one value."""
    below, above = answer.intervals[: answer.home][::-1], answer.intervals[answer.home + 1 :]
    for nearest_first, end in ((below, -1), (above, 0)):
        lasting = next((run for run in nearest_first if len(run.points) > 1), None)
        for index, run in enumerate(nearest_first):
            if index == 0 or run is lasting:
                yield run.points[end]


def _print_other(answer: OverRange, point: Point, everything: bool) -> None:
    """What is decided, or stands in the way, at a value where the plan's decision does not hold."""
    outcome = point.outcome
    console.say()
    if outcome.error is not None:
        console.say(f"at {where(answer, point)}:")
        _print_error(outcome)
        return
    console.say(f"at {where(answer, point)}, {parts_differ(outcome.changes, answer.again.parts)}:")
    _print_changes(outcome.changes, everything)
    figures = [change for change in outcome.metrics if "." not in change.path]
    if figures:
        console.say("metrics:")
        _print_changes(figures, everything)


def _print_error(outcome: Outcome) -> None:
    for line in outcome.error.lines() if outcome.error else []:
        _say(f"  {line.strip()}", indent="    ")


def _print_changes(changes: Sequence[Change], everything: bool) -> None:
    kept = changes if everything else changes[:_CHANGES_SHOWN]
    for change in kept:
        line = change_line(change)
        console.say(line if everything or len(line) <= console.WIDTH else f"{line[: console.WIDTH - 3]}...")
    if len(kept) < len(changes):
        console.say(f"  and {len(changes) - len(kept):,} more (--all)")


def _about_range(answer: OverRange) -> Iterator[str]:
    again, course = answer.again, answer.course
    ends = [point for point in (answer.points[0], answer.points[-1]) if point.value != course.start]
    said = [
        f"{_beside(again, point.outcome)} at {where(answer, point)}"
        for point in ends
        if point.outcome.objective is not None
    ]
    if said:
        yield f"objective: {amount(again.objective, again.unit)} in the plan, {', '.join(said)}"
    outcomes = [point.outcome for point in answer.points]
    if not any(outcome.error or outcome.changes or outcome.metrics for outcome in outcomes):
        yield "no figure of the plan changes with it: there is room, or the plan does not use it"
    yield from _about(again, outcomes)
    for stop in course.stops:
        place = "" if stop.where in (None, answer.movement.path) else f" (at {stop.where})"
        yield f"not valid at {where(answer, stop)}: {stop.message}{place}"
    if course.skipped:
        nearest = min(course.skipped, key=lambda refused: abs(refused.value - course.start))
        such = quantity(answer.movement.path, nearest.value, 9)
        yield f"of the whole numbers looked at {len(course.skipped)} are not valid, such as {such}: {nearest.message}"
    if len(answer.intervals) > 1 and isinstance(course.start, float):
        yield "changes are located to 0.1 % of the value; one that comes and goes between two values tried is not seen"
    if not answer.complete:
        yield f"{len(answer.points)} values are the limit: changes far from the plan's are located less closely"


def _about(again: Again, outcomes: Iterable[Outcome]) -> Iterator[str]:
    """How far to trust the answer."""
    planned = again.outcome
    if again.other is not None:
        yield f"priced again the plan's problem is another: {again.other}; changes are counted from today's"
    made = [outcome for outcome in outcomes if outcome.error is None]
    if planned.changes:
        others = [f"planner {again.planner}"] if again.planner else []
        others += [again.version] if again.version else []
        by = f" (it was made by {' and '.join(others)})" if others else ""
        yield (
            f"the plan's own problem, solved again, gives another decision{by}: "
            f"{parts_differ(planned.changes, again.parts)}, objective {amount(again.objective, again.unit)}; "
            "changes are counted from that one"
        )
    gap = max((outcome.gap or 0.0 for outcome in made), default=0.0)
    if gap > 0:
        chance = ": within that, a change may be the search's" if any(outcome.changes for outcome in made) else ""
        yield f"objectives are at most {percent(gap)} from the best possible{chance}"
    methods = sorted({outcome.method for outcome in made if outcome.method} | {planned.method or ""})
    if len(methods) > 1:
        yield f"the method was not the same everywhere: {', '.join(methods)}"


def _say(sentence: str, indent: str = "") -> None:
    for line in textwrap.wrap(
        printable(sentence),
        console.WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        console.say(line)
