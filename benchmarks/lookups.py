"""Lookups: how wrong beside log-log interpolation on rows that were left out, and how many a second.

Accuracy needs the aiconfigurator extra, since it is over all rows of the database before any reduction, repeats and
spikes included (rows drawn with seed 0, folds as in `profiles.making.trust`). Log-log is scored on the same rows, each
between its two neighbours on its own curve, repeats merged. Noise is how far repeats of one key lie from their median.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from profiles.builtin import SYSTEMS, built_in_rows
from profiles.families import FAMILIES
from profiles.importers.aiconfigurator import MULTIPROCESSORS
from profiles.library import load
from profiles.making.building import RawRows, build_table
from profiles.making.monotone import lines
from profiles.making.repeats import merge_repeats, positions

Floats = npt.NDArray[np.float64]
QUERIES = 100_000


def main(smoke: bool) -> None:
    """Print both."""
    _rates(1 if smoke else 7)
    if importlib.util.find_spec("aiconfigurator_core") is None or importlib.util.find_spec("pyarrow") is None:
        print("accuracy: skipped, the aiconfigurator extra is not installed")
        return
    print("errors in %, median / p90      rows   log-log       one row       one value     noise")
    for system in SYSTEMS[:1] if smoke else SYSTEMS:
        for raw in built_in_rows(system):
            if not smoke or raw.family == "all_gather":
                _accuracy(system, raw)


def _accuracy(system: str, raw: RawRows) -> None:
    table = build_table(raw, multiprocessors=MULTIPROCESSORS[system])
    errors = {error.held_out: error for error in table.errors if not error.region}
    along = errors[f"one value of {FAMILIES[raw.family].along}"]
    row = errors.get("one row", along)
    noise = table.repeat_spread
    name = "/".join(part for part in (system, *table.key) if part)
    print(
        f"{name:50s} {along.rows:6d}  {_both(*_log_log(raw))}  {_both(row.median, row.p90)}  "
        f"{_both(along.median, along.p90)}  {_both(noise.median, noise.p90) if noise else ''}"
    )


def _both(median: float, p90: float) -> str:
    return f"{median * 100:4.1f} / {p90 * 100:4.1f}"


def _log_log(raw: RawRows) -> tuple[float, float]:
    """Median and p90 of the error between the two neighbours on a row's own curve."""
    family = FAMILIES[raw.family]
    columns, seconds, _ = merge_repeats(raw.columns, raw.seconds, family.axes)
    predicted = np.full(len(seconds), np.nan)
    for line in lines(columns, family.along):
        x, y = np.log(columns[family.along][line]), np.log(seconds[line])
        share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
        predicted[line[1:-1]] = np.exp(y[:-2] + share * (y[2:] - y[:-2]))
    error = np.abs(predicted[positions(columns, raw.columns, family.axes)] / raw.seconds - 1.0)
    error = error[np.isfinite(error)]
    return float(np.median(error)), float(np.percentile(error, 90))


def _rates(runs: int) -> None:
    """Lookups a second of CPU time in one call of QUERIES, beside the numpy work of three logarithms each."""
    profile, draw = load("h200-sxm"), np.random.default_rng(0)
    m = draw.integers(1, 32_769, QUERIES).astype(float)
    n, k = (draw.integers(64, 16_385, QUERIES).astype(float) for _ in range(2))
    length, heads = draw.integers(64, 65_537, QUERIES).astype(float), draw.integers(1, 17, QUERIES).astype(float)
    size = draw.integers(4096, 1 << 28, QUERIES).astype(float)
    base = _million_a_second(lambda: np.log(m) + np.log(n) + np.log(k), runs)
    calls: dict[str, Callable[[], object]] = {
        "gemm bf16": lambda: profile.gemm(m, n, k),
        "gemm fp8": lambda: profile.gemm(m, n, k, dtype="fp8"),
        "encoder attention, measured": lambda: profile.attention(length, length, heads, 64),
        "encoder attention, modelled": lambda: profile.attention(length, length, heads, 128, extrapolate="roofline"),
        "all_gather": lambda: profile.collective("all_gather", size, 8),
    }
    for name, look_up in calls.items():
        rate = _million_a_second(look_up, runs)
        print(f"{name:40s} {rate:5.2f} million a second, three logarithms {base / rate:5.1f} times as fast")


def _million_a_second(look_up: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.process_time()
        look_up()
        times.append(time.process_time() - start)
    return QUERIES / min(times) / 1e6
