"""Rates that a table's rows imply, against what the device states: too fast to be true, or too slow to be meant.

A clock off by 1000 (milliseconds as seconds, or as microseconds) shows here. Factors that leave the rates between a
fiftieth of the device and all of it do not show: a factor of 2 is no contradiction to a table that uses half.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profiles.checks.finding import Finding, Severity, as_axes, count, row_place, row_words, title
from profiles.document import Device, ProfileDocument, Table
from profiles.families import DTYPE_BYTES
from profiles.work import compute_dtype, flops, link_bytes, memory_bytes

Floats = npt.NDArray[np.float64]

CACHE_BYTES = 5e8
"""Rows that touch less may live in a cache (L40S 96 MB, B200 126 MB, MI300X 256 MB) and say nothing about memory."""
OVER_PEAK = 1.1
"""Clocks boost and stated peaks are rounded: up to a tenth above is a warning."""
LONG_S = 5e-5
"""Rows that an ideal device needs at least this long for are judged for slowness; below, overhead is the rule."""
IDLE, BROKEN = 0.02, 0.002
"""Best share of the device: below the first odd, below the second a unit (a thousandth of what tables reach)."""


@dataclass(frozen=True)
class Rate:
    """Work of each row (NaN where a row is not judged), what was stated about its rate, and what nothing exceeds."""

    unit: str
    work: Floats
    stated: float | None
    place: str
    most: float
    least: float
    least_work: float


def beyond_physics(number: int, table: Table, device: Device) -> list[Finding]:
    """Rows faster than the device or any device, and tables slower than a hundredth of it."""
    found = []
    seconds = np.asarray(table.latency_s)
    for rate in _rates(table, device):
        found += _too_fast(number, table, seconds, rate)
        found += _too_slow(number, table, seconds, rate)
    return found


def not_checked(document: ProfileDocument) -> list[Finding]:
    """A note for each number of the device that tables should be compared with and nobody stated."""
    tables: dict[str, list[str]] = {}
    for table in document.tables:
        for rate in _rates(table, document.device):
            if rate.stated is None:
                tables.setdefault(rate.place, []).append(title(table))
    return [
        Finding(
            "not_checked", "note", "", place, f"not checked: the rates of {', '.join(names)}; {place} is not stated",
            "the vendor's number", "compare with your network" if place == _BETWEEN else f"state {place}",
        )
        for place, names in tables.items()
    ]  # fmt: skip


def _rates(table: Table, device: Device) -> Iterator[Rate]:
    axes, family = as_axes(table), table.family
    arithmetic = flops(family, axes)
    if arithmetic is not None and family != "decode_attention":
        computed = compute_dtype(table.dtype)
        peak = device.peak_flop_per_s.get(computed)
        yield Rate("FLOP/s", arithmetic, peak, f"device.peak_flop_per_s.{computed}", 1e17, 1e9, 1e9)
    moved = memory_bytes(family, axes, float(DTYPE_BYTES[table.dtype]))
    if moved is not None:
        large = np.where(moved >= CACHE_BYTES, moved, np.nan)
        if np.isfinite(large).any():
            place = "device.memory_bandwidth_bytes_per_s"
            yield Rate("B/s of memory", large, device.memory_bandwidth_bytes_per_s, place, 1e14, 1e8, 1e7)
    sent = link_bytes(family, axes)
    if sent is not None:
        inside = axes["nodes"] == 1
        if inside.any():
            place, stated = "device.intra_node_bandwidth_bytes_per_s", device.intra_node_bandwidth_bytes_per_s
            yield Rate("B/s per rank", np.where(inside, sent, np.nan), stated, place, 2e13, 1e8, 1e7)
        if not inside.all():
            yield Rate("B/s per rank between nodes", np.where(inside, np.nan, sent), None, _BETWEEN, 2e13, 1e8, 1e7)


_BETWEEN = "the bandwidth between nodes"


def _too_fast(number: int, table: Table, seconds: Floats, rate: Rate) -> list[Finding]:
    achieved = rate.work / seconds
    limit = min(rate.stated or np.inf, rate.most)
    over = achieved / limit
    rows = np.flatnonzero(over > 1.0)
    if not len(rows):
        return []
    worst = int(rows[np.argmax(over[rows])])
    known = limit == rate.stated
    severity: Severity = "error" if over[worst] > OVER_PEAK else "warning"
    fix = (
        "times this short are a unit: milliseconds taken for microseconds are 1000 times too small"
        if over[worst] > 50
        else f"check the unit of latency_s, the axes (FLOPs are of whole shapes, messages in bytes) and {rate.place}"
    )
    return [
        Finding(
            "faster_than_device" if known else "faster_than_any_device",
            severity,
            title(table),
            row_place(number, worst),
            f"{count(len(rows), 'row')} above the limit, the worst {over[worst]:.3g} times it: "
            f"{achieved[worst]:.3g} {rate.unit} at {row_words(table, worst)}",
            f"at most {limit:.4g} {rate.unit} ({rate.place if known else 'no device reaches it'})",
            fix,
        )
    ]


def _too_slow(number: int, table: Table, seconds: Floats, rate: Rate) -> list[Finding]:
    """The best row that is long enough to show what the device does, if even that one does next to nothing."""
    if rate.stated is not None and not (table.family == "memory_copy" and "host" in table.workload):
        limit, least, judged = rate.stated, IDLE, rate.work / rate.stated >= LONG_S
    else:
        limit, least, judged = rate.least, 1.0, rate.work >= rate.least_work
    share = np.where(judged & np.isfinite(rate.work), rate.work / seconds / limit, 0.0)
    best = int(np.argmax(share))
    if not judged.any() or share[best] >= least:
        return []
    broken = rate.stated is not None and least == IDLE and share[best] < BROKEN
    return [
        Finding(
            "slower_than_plausible",
            "error" if broken else "warning",
            title(table),
            row_place(number, best),
            f"the best of {count(int(judged.sum()), 'long row')} does {rate.work[best] / seconds[best]:.3g} "
            f"{rate.unit}, {share[best]:.2g} of {limit:.4g}, at {row_words(table, best)}",
            f"at least {least * limit:.3g} {rate.unit}",
            "latency_s is in seconds: milliseconds stored as they are would be 1000 times too large",
        )
    ]
