"""Timing an operation: by a timer that the test decides, never by a clock."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from profiles.measure.sampling import LEAST_SAMPLES, MOST_SAMPLES, time_operation


class Script:
    """A timer whose runs take what a list says, over and over, after a first cold one; remembers its calls."""

    def __init__(self, seconds: Sequence[float], cold: float = 0.0) -> None:
        self.seconds, self.cold = itertools.cycle(seconds), cold
        self.calls: list[tuple[int, int]] = []

    def __call__(self, count: int, loops: int) -> tuple[list[float], float]:
        self.calls.append((count, loops))
        found = [next(self.seconds) for _ in range(count)]
        if len(self.calls) == 1 and self.cold:
            found[0] = self.cold
        return found, sum(found) * loops


def test_a_steady_operation_is_sampled_five_times_after_a_warm_up() -> None:
    timer = Script([0.01], cold=7.0)
    timing = time_operation(timer, budget_s=60, timed_s=1e-4)
    assert (timing.median_s, timing.spread, timing.count) == (0.01, 0.0, LEAST_SAMPLES)
    assert timer.calls == [(1, 1), (LEAST_SAMPLES, 1)]


def test_a_short_operation_runs_in_a_loop_that_outlasts_the_clock() -> None:
    # 2^-20 s against 2^-12 s: loops of 256. The first run, cold, took 2^-13 s and must not decide that.
    timer = Script([2.0**-20], cold=2.0**-13)
    assert time_operation(timer, budget_s=1, timed_s=2.0**-12).median_s == 2.0**-20
    assert timer.calls[-1] == (LEAST_SAMPLES, 256)


def test_noise_is_sampled_until_the_budget_is_used() -> None:
    # 1 and 3 s in turn: interquartile range 2 over median 2. Of 100 s the warm-up takes one.
    timing = time_operation(Script([1.0, 3.0]), budget_s=100, timed_s=0)
    assert 40 <= timing.count <= 55
    assert timing.median_s in (1.0, 2.0, 3.0)
    assert timing.spread == pytest.approx(1.0, rel=0.5)


def test_noise_of_short_operations_ends_with_the_most_samples() -> None:
    assert time_operation(Script([1.0, 3.0]), budget_s=1e9, timed_s=0).count == MOST_SAMPLES


def test_one_slow_run_does_not_move_the_median() -> None:
    assert time_operation(Script([1.0, 1.0, 9.0, 1.0, 1.0, 1.0]), budget_s=50, timed_s=0).median_s == 1.0


def test_three_samples_are_taken_whatever_the_budget_says() -> None:
    assert time_operation(Script([0.5]), budget_s=0.1, timed_s=1e-4).count == 3


def test_of_what_takes_long_there_is_one_sample_unless_the_budget_has_room() -> None:
    timer = Script([5.0])
    assert time_operation(timer, budget_s=0.1, timed_s=1e-4).count == 1
    assert timer.calls == [(1, 1), (1, 1)]
    assert time_operation(Script([5.0]), budget_s=1000, timed_s=1e-4).count == LEAST_SAMPLES
