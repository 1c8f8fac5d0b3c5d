"""The values that a movement leads through: a sweep's, and those between two of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.errors import BadInputError
from planner.json_text import is_64_bit
from planner.sensitivity.movement import Movement, Number
from planner.sensitivity.refused import Refusal, Refused
from planner.sensitivity.whole_numbers import valid_between, whole_numbers

POINTS = 16
"""Values that a sweep tries first beside the plan's own, evenly spaced; half of them on each of two sides."""
TOLERANCE = 1e-3
"""Between two floats whose difference is at most this share of the larger one, nothing more is looked for."""
FINE = 1e-2
"""The same as a share of the whole movement, where that is less."""


@dataclass(frozen=True)
class Course:
    """The valid values to try, ascending, the plan's own among them.

    ``stops`` are the first values found on each side past which none is, where they end before the movement does;
    ``skipped`` are integers on the way that are not valid.
    """

    start: Number
    values: tuple[Number, ...]
    stops: tuple[Refused, ...]
    skipped: tuple[Refused, ...]
    finest: float
    refusal: Refusal

    def between(self, low: Number, high: Number) -> Number | None:
        """A value to try between two, None where they are next to each other or close enough."""
        if isinstance(self.start, int):
            return valid_between(int(low), int(high), self.refusal)
        if high - low <= min(TOLERANCE * max(abs(low), abs(high), abs(self.start)), self.finest):
            return None
        middle = _middle(self.start, low, high)
        return middle if low < middle < high else None


def course(movement: Movement, start: Number, refusal: Refusal, unposed: Refusal) -> Course:
    """The values to try. Those that ``refusal`` refuses, which is asked often, are left out.

    ``unposed`` refuses them as well, and what has no price. It may take long, so it is asked of ends alone: nothing is
    tried past the first value that it refuses. Raises BadInputError if no value but ``start`` is left.
    """
    reach = abs(start) * movement.amount / 100 if movement.relative else movement.amount
    ends = (start - reach if movement.down else start, start + reach if movement.up else start)
    if not all(math.isfinite(end) for end in ends) or (
        isinstance(start, int) and not all(is_64_bit(int(e)) for e in ends)
    ):
        raise BadInputError(
            f"{movement.text} leaves what a 64-bit number holds", code="out_of_range", where=movement.path
        )
    per_side = POINTS // (movement.down + movement.up)
    values: list[Number] = [start]
    stops: list[Refused] = []
    skipped: list[Refused] = []
    for end in ends:
        if isinstance(start, int):
            found = whole_numbers(start, end, per_side, refusal, unposed)
            values += found.values
            skipped += found.skipped
            stops += found.stops
        elif end != start:
            values += _floats(start, end, per_side, unposed, stops)
    values = sorted(set(values))
    if len(values) == 1:
        refused = next(iter([*stops, *skipped]), None)
        why = (
            f"no other value is valid: {refused.message}" if refused else f"no other value lies within it of {start!r}"
        )
        raise BadInputError(
            f"{movement.text}: {why}", code=refused.code if refused else "out_of_range", where=movement.path
        )
    span = max(abs(value - start) for value in values)
    return Course(
        start, tuple(values), tuple(stops), tuple(sorted(skipped, key=lambda r: r.value)), FINE * span, refusal
    )


def _floats(start: float, end: float, count: int, refusal: Refusal, stops: list[Refused]) -> list[float]:
    error = refusal(end)
    if error is not None:
        # Validity is cheap to ask for, so the points are spent on what is valid.
        near, far = start, end
        reach = abs(end - start)
        while abs(far - near) > TOLERANCE * max(min(abs(start) or reach, reach), abs(far - start)):
            middle = _middle(start, near, far)
            if middle in (near, far):
                break
            found = refusal(middle)
            near, far, error = (middle, far, error) if found is None else (near, middle, found)
        stops.append(Refused.of(far, error))
        end = near
    shares = [step / count for step in range(1, count + 1)]
    low, high = sorted((start, end))
    return [min(max(start * (1 - share) + end * share, low), high) for share in shares]


def _middle(start: float, low: float, high: float) -> float:
    """Halfway, or the geometric mean of the distances from the start where one is a hundred times the other."""
    near, far = sorted((low, high), key=lambda value: abs(value - start))
    side = 1.0 if far > start else -1.0
    least = max(abs(near - start), TOLERANCE * abs(start))
    if abs(far - start) > 100 * least > 0:
        return start + side * math.sqrt(least) * math.sqrt(abs(far - start))
    return low / 2 + high / 2
