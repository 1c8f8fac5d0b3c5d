"""Ctrl-C during a CP-SAT search ends it and is not taken for an answer."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from solvers import cpsat
from solvers.report import Limits


def test_an_interrupt_reaches_the_caller_and_stops_the_search() -> None:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    # Thirty-odd numbers into six near-equal bins: minutes of search.
    sizes = [10**6 + (7919 * i * i) % 99991 for i in range(36)]
    bins = [[model.new_bool_var("") for _ in range(6)] for _ in sizes]
    top = model.new_int_var(0, sum(sizes), "")
    for row in bins:
        model.add_exactly_one(row)
    for column in zip(*bins, strict=True):
        model.add(sum(size * x for size, x in zip(sizes, column, strict=True)) <= top)
    model.minimize(top)
    before = threading.active_count()
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        cpsat.run(model, [top], Limits(), 10_000.0)
    assert time.monotonic() - start < 60
    assert threading.active_count() <= before + 1  # the timer may still be ending, the search is not
