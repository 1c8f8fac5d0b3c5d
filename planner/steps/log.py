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
Times of validation steps are never taken for those of training steps.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TextIO

from planner.errors import BadInputError
from planner.json_text import parse_json
from planner.steps.lines import EXPECTED, Found, Lines, StepTimes, blank_left_out, fault, number_of, seconds_of
from planner.steps.names import evaluation_names, time_names
from planner.steps.rows import cells, read_csv, read_json_lines, refuse_separator

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
        raise BadInputError(f"{name} holds no step time: {EXPECTED}", code="missing_field", where="--against")
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
            raise fault(name, number, f"longer than {MAX_LINE_CHARACTERS} characters", "too_large")
        if text := _ESCAPES.sub("", line).rstrip("\n"):
            yield number, text


def _read(lines: Lines, name: str) -> StepTimes:
    """By the first line that is not blank; a console may print anything, so what is neither JSON nor CSV is one."""
    first = next(((number, line) for number, line in lines if line.strip()), (1, ""))
    if name.lower().endswith(".jsonl") or _is_object(first[1]):
        return read_json_lines(first, lines, name)
    try:
        header = cells(first[1], name, first[0])
    except BadInputError:
        header = []
    refuse_separator(first[1], name, first[0])
    if name.lower().endswith(".csv") or (len(header) > 1 and (time_names(header) or evaluation_names(header))):
        return read_csv(header, lines, name, first[0])
    return _read_console(first, lines, name)


def _is_object(line: str) -> bool:
    if not line.lstrip().startswith("{"):
        return False
    try:
        return isinstance(parse_json(line, "the line"), dict)
    except BadInputError as error:
        return error.code != "not_json"
    except RecursionError:
        return True


def _read_console(first: tuple[int, str], lines: Lines, name: str) -> StepTimes:
    """Lines of whichever framework; of several formats in one log the one with the most lines."""
    found = {form: Found() for form in _CONSOLE}
    for number, line in blank_left_out(chain([first], lines)):
        for form, (time, step, scale) in _CONSOLE.items():
            if matched := time.search(line):
                numbered = step.search(line) if step else None
                seconds = seconds_of(number_of(matched[1].rstrip(",;"), name, number), scale, name, number)
                found[form].add(seconds, int(numbered[1][:18]) if numbered else None)
    best = max(_CONSOLE, key=lambda form: len(found[form].step_s))
    return found[best].times(best)
