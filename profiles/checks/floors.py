"""What holds on any device: nothing starts in nanoseconds, and small work does not take milliseconds."""

from __future__ import annotations

import numpy as np

from profiles.checks.finding import Finding, as_axes, count, row_place, row_words, title
from profiles.document import Table
from profiles.families import COLLECTIVES
from profiles.work import flops

LAUNCH_S = 1e-7
MESSAGE_S = 2e-7
SLOW_KERNEL_S, SLOW_MESSAGE_S = 1e-3, 3e-3
SMALL_BYTES = 65536
SMALL_FLOPS = 1e7


def unlikely_starts(number: int, table: Table) -> list[Finding]:
    """Rows below the start of a kernel or message; a table whose quickest small row takes milliseconds."""
    seconds = np.asarray(table.latency_s)
    message = table.family in COLLECTIVES
    floor, most, what = (MESSAGE_S, SLOW_MESSAGE_S, "message") if message else (LAUNCH_S, SLOW_KERNEL_S, "kernel")
    found = []
    below = np.flatnonzero(seconds < floor)
    if len(below):
        worst = int(below[np.argmin(seconds[below])])
        found.append(
            Finding(
                "below_launch",
                "error",
                title(table),
                row_place(number, worst),
                f"{count(len(below), 'row')} shorter than the start of a {what}, the shortest at "
                f"{row_words(table, worst)}",
                f"at least {floor:g} s",
                "latency_s is in seconds: milliseconds taken for microseconds are 1000 times too small",
            )
        )
    axes = as_axes(table)
    work = flops(table.family, axes)
    small = np.zeros(len(seconds), dtype=bool)
    if work is not None:
        small = work <= SMALL_FLOPS
    elif "message_bytes" in axes:
        small = axes["message_bytes"] <= SMALL_BYTES
    if small.any() and seconds[small].min() > most:
        row = int(np.flatnonzero(small)[np.argmin(seconds[small])])
        found.append(
            Finding(
                "slow_start",
                "warning",
                title(table),
                row_place(number, row),
                f"the quickest of {count(int(small.sum()), 'small row')} is {row_words(table, row)}",
                f"at most {most:g} s for work this small",
                "latency_s is in seconds: milliseconds stored as they are would be 1000 times too large",
            )
        )
    return found
