"""What every reader of step times shares: numbered lines, seconds that can be a step's, what was found so far."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from planner.errors import BadInputError
from planner.json_text import Json

MAX_STEPS = 10_000_000
SHORTEST_S, LONGEST_S = 1e-7, 1e7
"""No step of a training run is shorter than a memory access or longer than four months."""
EXPECTED = (
    "expected the console log of Megatron, NeMo, NeMo-RL or verl, JSON Lines, or CSV with a header, "
    "with times named like step_time_s or step_time_ms"
)
Lines = Iterator[tuple[int, str]]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True)
class StepTimes:
    """Seconds of the steps of a log in its order, and their numbers (None where it has none).

    ``form`` is one of FORMATS; ``field`` is the key or column that was read, empty for console lines. ``without`` rows
    hold no step time under that name.
    """

    form: str
    field: str
    step_s: tuple[float, ...]
    steps: tuple[int | None, ...]
    without: int = 0


@dataclass
class Found:
    """The steps of a log so far."""

    step_s: list[float] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    without: int = 0

    def add(self, seconds: float, step: int | None) -> None:
        """One more step. Raises BadInputError if there are too many."""
        if len(self.step_s) >= MAX_STEPS:
            raise BadInputError(f"the log holds more than {MAX_STEPS} steps", code="too_large", where="--against")
        self.step_s.append(seconds)
        self.steps.append(step)

    def times(self, form: str, name: str = "") -> StepTimes:
        """What was found."""
        return StepTimes(form, name, tuple(self.step_s), tuple(self.steps), self.without)


def blank_left_out(lines: Lines) -> Lines:
    """The lines that are not blank."""
    return ((number, line) for number, line in lines if line.strip())


def number_of(text: str, name: str, number: int) -> float:
    """The number that a text is. Raises BadInputError."""
    if not _NUMBER.fullmatch(text):
        raise fault(name, number, f'"{text[:40]}" is no number', "wrong_type")
    return float(text)


def seconds_of(value: Json, unit_s: float, name: str, number: int) -> float:
    """A step time in seconds from a value in units of ``unit_s``. Raises BadInputError if it can be none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise fault(name, number, "expected a number as step time", "wrong_type")
    if not math.isfinite(value):
        raise fault(name, number, f"{value} is no step time", "not_finite")
    if value <= 0:
        raise fault(name, number, f"expected a step time > 0, got {value:g}", "out_of_range")
    seconds = float(value) * unit_s
    if not SHORTEST_S <= seconds <= LONGEST_S:
        reason = f"expected a step time from {SHORTEST_S:g} to {LONGEST_S:g} s, got {seconds:g} s"
        raise fault(name, number, reason, "out_of_range")
    return seconds


def fault(name: str, number: int, reason: str, code: str) -> BadInputError:
    """The error of a line of a log."""
    return BadInputError(f"{name} line {number}: {reason}", code=code, where="--against")
