"""Step times of a log whose rows have named values: JSON Lines, or CSV with a header."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import chain

from planner.errors import BadInputError
from planner.json_text import Json, parse_json
from planner.steps.lines import EXPECTED, Found, Lines, StepTimes, blank_left_out, fault, number_of, seconds_of
from planner.steps.names import STEP_NAMES, evaluation_names, seconds_of_unit, time_names

SAME = 0.01
"""Two step times of one row that differ by no more are one, rounded twice."""


def read_json_lines(first: tuple[int, str], lines: Lines, name: str) -> StepTimes:
    """The step times of JSON Lines from their first row on. Raises BadInputError with the line."""
    found, chosen, evaluation, nested = Found(), "", "", ""
    for number, line in blank_left_out(chain([first], lines)):
        try:
            row: Json = parse_json(line, "the line")
        except BadInputError as error:
            raise fault(name, number, error.message, error.code) from None
        except RecursionError:
            raise fault(name, number, "nested too deeply", "too_large") from None
        if not isinstance(row, dict):
            raise fault(name, number, "expected a JSON object", "wrong_type")
        timed = [key for key in time_names([str(key) for key in row]) if row[key] is not None]
        evaluation = evaluation or next(iter(evaluation_names(list(row))), "")
        nested = nested or _nested(row)
        if timed and not chosen:
            chosen = _with_unit(timed[0], name, number)
        if chosen in timed:
            times = {key: seconds_of(row[key], unit, name, number) for key in timed if (unit := seconds_of_unit(key))}
            _refuse_disagreement(times, chosen, name, number)
            step = next((row[key] for key in STEP_NAMES if type(row.get(key)) is int), None)
            found.add(times[chosen], step)
        else:
            found.without += 1
    if not chosen and (evaluation or nested):
        raise _only(name, evaluation, nested)
    return found.times("jsonl", chosen)


def read_csv(header: Sequence[str], lines: Lines, name: str, first: int) -> StepTimes:
    """The step times of CSV after its header. Raises BadInputError with the line."""
    twice = next((cell for index, cell in enumerate(header) if cell and cell in header[:index]), None)
    if twice is not None:
        raise fault(name, first, f'two columns are called "{twice[:80]}"', "duplicate_id")
    timed = time_names(header)
    if not timed:
        if evaluation := evaluation_names(header):
            raise _only(name, evaluation[0], "")
        shown = ", ".join(header)[:200]
        raise fault(name, first, f"no column of step times among {shown}: {EXPECTED}", "missing_field")
    found, chosen = Found(), _with_unit(timed[0], name, first)
    columns = {key: header.index(key) for key in timed}
    numbered = next((header.index(key) for key in STEP_NAMES if key in header), None)
    for number, line in blank_left_out(lines):
        row = cells(line, name, number)
        if len(row) != len(header):
            raise fault(name, number, f"expected {len(header)} columns, got {len(row)}", "wrong_type")
        if not row[columns[chosen]]:
            found.without += 1
            continue
        times = {
            key: seconds_of(number_of(row[column], name, number), seconds_of_unit(key) or 1.0, name, number)
            for key, column in columns.items()
            if row[column]
        }
        _refuse_disagreement(times, chosen, name, number)
        step = row[numbered][:18] if numbered is not None else ""
        found.add(times[chosen], int(step) if step.isdecimal() else None)
    return found.times("csv", chosen)


def cells(line: str, name: str, number: int) -> list[str]:
    """The cells of a CSV line. Raises BadInputError."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True), [])]
    except csv.Error as error:
        raise fault(name, number, f"not CSV: {error}", "not_json") from None


def refuse_separator(line: str, name: str, number: int) -> None:
    """Raise BadInputError for a header of step times whose columns are not separated by commas."""
    for separator, called in ((";", "semicolons"), ("\t", "tabs")):
        header = [cell.strip().strip('"') for cell in line.split(separator)]
        if len(header) > 1 and (time_names(header) or evaluation_names(header)):
            raise fault(name, number, f"the columns are separated by {called}: expected commas", "wrong_type")


def _with_unit(chosen: str, log: str, number: int) -> str:
    """The name of step times. Raises BadInputError for one without unit."""
    if seconds_of_unit(chosen) == 0:
        raise fault(log, number, f'"{chosen}" says no unit: name it {chosen}_s or {chosen}_ms', "missing_field")
    return chosen


def _refuse_disagreement(times: Mapping[str, float], chosen: str, log: str, number: int) -> None:
    for key, seconds in times.items():
        if abs(seconds - times[chosen]) > SAME * times[chosen]:
            reason = f'"{chosen}" says {times[chosen]:g} s and "{key}" {seconds:g} s: leave the one that is meant'
            raise fault(log, number, reason, "out_of_range")


def _nested(row: Mapping[str, Json]) -> str:
    """The path of a step time in an object inside a row, empty if there is none."""
    inside = ((key, inner) for key, inner in row.items() if isinstance(inner, dict))
    return next((f"{key}.{names[0]}" for key, inner in inside if (names := time_names(list(inner)))), "")


def _only(name: str, evaluation: str, nested: str) -> BadInputError:
    if nested:
        reason = f'"{nested[:80]}" is in an object inside a row, and nested objects are not read: write it beside them'
    else:
        reason = f'only validation step times ("{evaluation[:80]}"), none of training steps'
    return BadInputError(f"{name} holds no step time: {reason}", code="missing_field", where="--against")
