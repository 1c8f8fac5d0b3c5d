"""One run: choose a place, see whether it fits, measure it, write it down; until budget or bends are used up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from profiles.families import COLLECTIVES
from profiles.measure.bench import Bench
from profiles.measure.effort import PREPARED_S, Measured, calls, guessed_seconds, memory_bytes
from profiles.measure.header_rules import implausible
from profiles.measure.log import Log
from profiles.measure.options import Options
from profiles.measure.place import Curve, Ladder, Place, Sample, Unmeasured
from profiles.measure.refinement import next_place
from profiles.measure.sampling import least_runs

Progress = Callable[[float, str], None]
"""progress(done, what): the share of the budget that is used, 0 to 1, and what is measured now."""

COARSE_SHARE = 0.5
"""Of the budget, for the first sizes of all curves; the rest is for where they bend."""
PLACE_S = (0.02, 2.0)
"""Least and most seconds for the samples of one place."""
FILL_BYTES_PER_S = 5e8


@dataclass
class Course:
    """How a run went: seconds by family, why places were not measured, how many are new, and why it ended."""

    seconds: dict[str, float] = field(default_factory=dict)
    skipped: dict[Place, str] = field(default_factory=dict)
    new: int = 0
    ended: str = ""


def run(
    ladders: Sequence[Ladder],
    bench: Bench,
    log: Log,
    options: Options,
    progress: Progress,
    clock: Callable[[], float] = time.monotonic,
) -> Course:
    """Measure until the budget is used, every prediction is within the tolerance, or there are enough places.

    The budget begins when the bench has started. Samples are in `log` as soon as they are taken, so an interrupt
    loses none but the one in work.
    """
    course = Course()
    share = COARSE_SHARE * options.budget_s / max(1, sum(len(ladder.sizes) for ladder in ladders))
    share = min(max(share, PLACE_S[0]), PLACE_S[1])
    curves = {ladder.curve for ladder in ladders}
    measured: dict[Curve, dict[int, Sample]] = {}
    for place, sample in log.samples.items():
        if place.curve in curves:
            measured.setdefault(place.curve, {})[place.size] = sample
    if len(log.samples) < options.max_points and next_place(ladders, measured, (), options.tolerance) is not None:
        progress(0.0, "starting")
        bench.start()
    start = clock()
    while not course.ended:
        began = clock()
        left = options.budget_s - (began - start)
        wanted = next_place(ladders, measured, course.skipped, options.tolerance)
        if left <= 0:
            course.ended = "the budget is used"
        elif len(log.samples) >= options.max_points:
            course.ended = f"{len(log.samples)} points are measured, as many as were asked for"
        elif wanted is None:
            course.ended = f"lookups between points agree within {options.tolerance:.3g}, where more can be measured"
        else:
            progress(1.0 - left / options.budget_s, wanted.words())
            found = _sample(wanted, measured, bench, options, left, share)
            if isinstance(found, Sample):
                log.record(wanted, found)
                measured.setdefault(wanted.curve, {})[wanted.size] = log.samples[wanted]
                course.new += 1
            else:
                course.skipped[wanted] = found.reason
            family = wanted.curve.family
            course.seconds[family] = course.seconds.get(family, 0.0) + clock() - began
    progress(1.0, course.ended)
    return course


def _sample(
    place: Place, measured: Measured, bench: Bench, options: Options, left_s: float, share_s: float
) -> Sample | Unmeasured:
    """A sample, unless memory or time forbid it."""
    needed = memory_bytes(place)
    copies = place.axes["ranks"] if place.curve.family in COLLECTIVES else bench.copies
    if options.max_bytes is not None and needed > options.max_bytes:
        return Unmeasured(f"needs {_gigabytes(needed)}, max_bytes allows {_gigabytes(options.max_bytes)}")
    available = bench.available_bytes(copies)
    if needed * copies > available:
        times = f" for {copies} ranks" if copies > 1 else ""
        return Unmeasured(f"needs {_gigabytes(needed * copies)}{times}, {_gigabytes(available)} may be used")
    guess = guessed_seconds(place, measured, bench.device)
    expected = guess * least_runs(guess) + needed / FILL_BYTES_PER_S + calls(place) * PREPARED_S
    if expected > left_s:
        return Unmeasured(f"would take about {expected:.3g} s, {left_s:.3g} s of the budget are left")
    found = bench.measure(place, min(share_s, left_s))
    reason = implausible(found) if isinstance(found, Sample) else None
    return found if reason is None else Unmeasured(reason)


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.3g} GB"
