"""Step times of a real run, read from its log: training frameworks' console lines, JSON Lines, or CSV with a header.

The formats and their units, each as its framework prints it:

    megatron   ` iteration 3/ 5 | ... | elapsed time per iteration (ms): 75249.6 | ...` (Megatron-LM and
               Megatron-DeepSpeed; with --log-interval n a line is the mean of n steps)
    nemo       `Training epoch 0, iteration 1/99 | ... | train_step_timing in s: 2.008 | ...`
    nemo-rl    `Total step time: 12.34s`
    verl       `step:1 - ... - timing_s/step:161.07 - ...`
    jsonl, csv a key or column whose name says what it is and in which unit: `step_time_s`, `iteration_time_ms`,
               `time_metrics/end_to_end(s)` (torchtitan), `perf/time_per_step` (verl, seconds), ...

A time without a unit is refused, and so is a number that is no time; lines that carry no step time are passed over.
"""

from __future__ import annotations

import csv
import io
import math
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TextIO

from planner.errors import BadInputError
from planner.json_text import Json, parse_json
from planner.step_names import STEP_NAMES, seconds_of_unit, time_name

MAX_STEPS = 10_000_000
MAX_LINE_CHARACTERS = 2**20

_ITERATION = re.compile(r"\biteration:?\s+(\d+)\s*/")
_CONSOLE: dict[str, tuple[re.Pattern[str], re.Pattern[str] | None, float]] = {
    "megatron": (re.compile(r"elapsed time per iteration \(ms\):\s*([^\s|]+)"), _ITERATION, 1e-3),
    # NeMo's closing report repeats all times in one list, `[11.85, ...`: not a step of its own.
    "nemo": (re.compile(r"train_step_timing in s:\s*([^\s|\[]+)"), _ITERATION, 1.0),
    "nemo-rl": (re.compile(r"Total step time:\s*(\S+)s\b"), None, 1.0),
    "verl": (re.compile(r"\btiming_s/step:\s*(\S+)"), re.compile(r"\bstep:(\d+) - "), 1.0),
}
FORMATS = (*_CONSOLE, "jsonl", "csv")

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_EXPECTED = (
    "expected the console log of Megatron, NeMo, NeMo-RL or verl, JSON Lines, or CSV with a header, "
    "with times named like step_time_s or step_time_ms"
)
Lines = Iterator[tuple[int, str]]


@dataclass(frozen=True)
class StepTimes:
    """Seconds of the steps of a log in its order, and their numbers (None where it has none).

    ``form`` is one of FORMATS; ``field`` is the key or column that was read, empty for console lines.
    """

    form: str
    field: str
    step_s: tuple[float, ...]
    steps: tuple[int | None, ...]


@dataclass
class _Found:
    step_s: list[float] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)

    def add(self, seconds: float, step: int | None) -> None:
        if len(self.step_s) >= MAX_STEPS:
            raise BadInputError(f"the log holds more than {MAX_STEPS} steps", code="too_large", where="--against")
        self.step_s.append(seconds)
        self.steps.append(step)

    def times(self, form: str, name: str = "") -> StepTimes:
        return StepTimes(form, name, tuple(self.step_s), tuple(self.steps))


def read_step_times(path: str) -> StepTimes:
    """The step times of a log file (``-`` is standard input), read line by line.

    Raises BadInputError with the line and the reason: no step time in it, a time without a unit, a time that is not a
    positive finite number, a broken JSON or CSV line, a line or a log that is too long.
    """
    name = "standard input" if path == "-" else path
    try:
        with _opened(path) as stream:
            found = _read(_lines(stream, name), name)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInputError(f"cannot read {name}: {reason}", code="not_json", where="--against") from None
    if not found.step_s:
        raise BadInputError(f"{name} holds no step time: {_EXPECTED}", code="missing_field", where="--against")
    return found


@contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    """Text whatever its bytes: consoles print progress bars and broken characters, and neither is a time."""
    if path != "-":
        with Path(path).open(encoding="utf-8-sig", errors="replace") as stream:
            yield stream
        return
    wrapped = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", errors="replace")
    try:
        yield wrapped
    finally:
        wrapped.detach()


def _lines(stream: TextIO, name: str) -> Lines:
    number = 0
    while line := stream.readline(MAX_LINE_CHARACTERS):
        number += 1
        if len(line) == MAX_LINE_CHARACTERS and not line.endswith("\n"):
            raise _fault(name, number, f"longer than {MAX_LINE_CHARACTERS} characters", "too_large")
        if text := _ESCAPES.sub("", line).rstrip("\n"):
            yield number, text


def _read(lines: Lines, name: str) -> StepTimes:
    """By the first line that is not blank; a console may print anything, so what is neither JSON nor CSV is one."""
    first = next(((number, line) for number, line in lines if line.strip()), (1, ""))
    if name.lower().endswith(".jsonl") or _is_object(first[1]):
        return _read_json_lines(first, lines, name)
    try:
        header = _cells(first[1], name, first[0])
    except BadInputError:
        header = []
    if name.lower().endswith(".csv") or (len(header) > 1 and time_name(header)):
        return _read_csv(header, lines, name, first[0])
    return _read_console(first, lines, name)


def _is_object(line: str) -> bool:
    if not line.lstrip().startswith("{"):
        return False
    try:
        return isinstance(parse_json(line, "the line"), dict)
    except BadInputError as error:
        return error.code != "not_json"


def _read_console(first: tuple[int, str], lines: Lines, name: str) -> StepTimes:
    """Lines of whichever framework; of several formats in one log the one with the most lines."""
    found = {form: _Found() for form in _CONSOLE}
    for number, line in _blank_left_out(chain([first], lines)):
        for form, (time, step, scale) in _CONSOLE.items():
            if matched := time.search(line):
                numbered = step.search(line) if step else None
                seconds = scale * _number(matched[1].rstrip(",;"), name, number)
                found[form].add(seconds, int(numbered[1][:18]) if numbered else None)
    best = max(_CONSOLE, key=lambda form: len(found[form].step_s))
    return found[best].times(best)


def _read_json_lines(first: tuple[int, str], lines: Lines, name: str) -> StepTimes:
    found, chosen = _Found(), ""
    for number, line in _blank_left_out(chain([first], lines)):
        try:
            row: Json = parse_json(line, "the line")
        except BadInputError as error:
            raise _fault(name, number, error.message, error.code) from None
        if not isinstance(row, dict):
            raise _fault(name, number, "expected a JSON object", "wrong_type")
        chosen = chosen or _time_name([str(key) for key in row], name, number)
        if chosen and row.get(chosen) is not None:
            step = next((row[key] for key in STEP_NAMES if type(row.get(key)) is int), None)
            found.add(_scale(chosen) * _checked(row[chosen], name, number), step)
    return found.times("jsonl", chosen)


def _read_csv(header: Sequence[str], lines: Lines, name: str, first: int) -> StepTimes:
    found, chosen = _Found(), _time_name(header, name, first)
    if not chosen:
        shown = ", ".join(header)[:200]
        raise _fault(name, first, f"no column of step times among {shown}: {_EXPECTED}", "missing_field")
    column = header.index(chosen)
    numbered = next((header.index(key) for key in STEP_NAMES if key in header), None)
    for number, line in _blank_left_out(lines):
        cells = _cells(line, name, number)
        if len(cells) != len(header):
            raise _fault(name, number, f"expected {len(header)} columns, got {len(cells)}", "wrong_type")
        if cells[column]:
            step = cells[numbered] if numbered is not None else ""
            found.add(_scale(chosen) * _number(cells[column], name, number), int(step) if step.isdecimal() else None)
    return found.times("csv", chosen)


def _blank_left_out(lines: Lines) -> Lines:
    return ((number, line) for number, line in lines if line.strip())


def _cells(line: str, name: str, number: int) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True), [])]
    except csv.Error as error:
        raise _fault(name, number, f"not CSV: {error}", "not_json") from None


def _time_name(names: Sequence[str], log: str, number: int) -> str:
    """The name of step times, empty if none is of them. Raises BadInputError for one without unit."""
    chosen = time_name(names)
    if chosen and seconds_of_unit(chosen) == 0:
        raise _fault(log, number, f'"{chosen}" says no unit: name it {chosen}_s or {chosen}_ms', "missing_field")
    return chosen


def _scale(name: str) -> float:
    return seconds_of_unit(name) or 1.0


def _number(text: str, name: str, number: int) -> float:
    """A step time from text."""
    try:
        return _checked(float(text), name, number)
    except ValueError:
        raise _fault(name, number, f'"{text[:40]}" is no number', "wrong_type") from None


def _checked(value: Json, name: str, number: int) -> float:
    """A positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _fault(name, number, "expected a number as step time", "wrong_type")
    if not math.isfinite(value):
        raise _fault(name, number, f"{value} is no step time", "not_finite")
    if value <= 0:
        raise _fault(name, number, f"expected a step time > 0, got {value:g}", "out_of_range")
    return float(value)


def _fault(name: str, number: int, reason: str, code: str) -> BadInputError:
    return BadInputError(f"{name} line {number}: {reason}", code=code, where="--against")
