"""Where seconds and bytes become solver integers, and how much that can change (page 4.5)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from planner.papers.zellige.instance import Instance, Mode

FINE, COARSE = 2**34, 2**20
"""Steps in the lower bound: FINE for few sequences, where optimality is then proved to 1e-9; COARSE else."""

FEW_SEQUENCES = 64
_NOISE = 1e-12
_MOST_STEPS = 2**44
"""A rank's load in steps stays below this, so that no sum in the model nears 64 bits."""


@dataclass(frozen=True)
class Grid:
    """Times and memories in whole steps.

    ``exact_time``: all prices are multiples of the step (within 1e-12); else each goes to the nearest. Memories are
    exact where they have a common step, else rounded down: a relaxation, whose placements need a second look, or up
    (``tight``), which excludes some.
    """

    time_step_s: float
    exact_time: bool
    memory_step_bytes: float
    tight: bool
    times: dict[float, int]
    memories: dict[float, int]
    cap: int

    def p(self, mode: Mode) -> int:
        """Price of a mode in time steps."""
        return self.times[mode.time_s]

    def m(self, mode: Mode) -> int:
        """Memory of a mode in memory steps."""
        return self.memories[mode.memory_bytes]

    def rounding_s(self, sequences: int, upper_s: float) -> float:
        """How much longer a rank's time can be in steps than in seconds, for any placement up to ``upper_s``."""
        if self.exact_time:
            return 0.0
        errors = {time: max(0.0, steps * self.time_step_s - time) for time, steps in self.times.items()}
        share = max(error / time for time, error in errors.items())
        return min(sequences * max(errors.values()), upper_s * share) + upper_s * 2**-50


def grid_of(instance: Instance, lower_s: float, upper_s: float, *, tight: bool = False) -> Grid:
    """The grid of an instance; ``lower_s`` and ``upper_s`` enclose the least makespan."""
    times = sorted({mode.time_s for kind in instance.kinds for mode in kind.modes})
    memories = sorted({mode.memory_bytes for kind in instance.kinds for mode in kind.modes})
    few = instance.num_sequences <= FEW_SEQUENCES
    time_step = common_step(times, upper_s) or near_step(times, upper_s)
    memory_step = common_step(memories, instance.memory_cap_bytes)
    second = time_step or max(Fraction(lower_s) / (FINE if few else COARSE), Fraction(upper_s) / _MOST_STEPS)
    byte = memory_step or Fraction(instance.memory_cap_bytes) / 2**40
    whole = math.ceil if tight else math.floor
    return Grid(
        time_step_s=float(second),
        exact_time=time_step is not None,
        memory_step_bytes=float(byte),
        tight=tight and memory_step is None,
        times={time: max(1, round(_decimal(time) / second)) for time in times},
        memories={memory: whole(_decimal(memory) / byte) for memory in memories},
        cap=math.floor(_decimal(instance.memory_cap_bytes) / byte),
    )


def common_step(values: Iterable[float], largest: float) -> Fraction | None:
    """The greatest number of which all values are multiples, as the decimals they print as; None if too small.

    Loads up to ``largest`` must stay within 2^44 steps. None too if all values are 0.
    """
    step = Fraction(0)
    for value in values:
        number = _decimal(value)
        step = Fraction(
            math.gcd(step.numerator * number.denominator, number.numerator * step.denominator),
            step.denominator * number.denominator,
        )
        if step and _decimal(largest) / step > _MOST_STEPS:
            return None
    return step or None


def near_step(values: list[float], largest: float) -> Fraction | None:
    """A step of which all values are multiples but for float noise, as after a change of unit; None if there is none.

    At most 10^6 steps in the greatest value: an accidental one is then out of the question.
    """
    top = step = max(values)
    for value in values:
        while value > 1e-11 * top:
            step, value = value, abs(step - value * round(step / value))
    if step < 1e-6 * top or largest / step > _MOST_STEPS:
        return None
    step = top / round(top / step)
    if any(abs(value - step * round(value / step)) > _NOISE * value for value in values):
        return None
    return Fraction(step)


def _decimal(value: float) -> Fraction:
    return Fraction(repr(float(value)))
