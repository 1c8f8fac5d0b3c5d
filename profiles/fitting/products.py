"""Products (GEMM, experts, what else has a formula): a roofline, and how much of the device it says is used."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profiles.document import Device, Table
from profiles.families import DTYPE_BYTES, FAMILIES
from profiles.fitting.document import Fit, Piece
from profiles.fitting.making import Axes, Unfitted, attempt, finite, key_of, pick, ranges, rows_of
from profiles.fitting.quality import held_out, quality, r_squared, short
from profiles.fitting.robust import at_bound, fit_curved
from profiles.roofline import MODELS
from profiles.work import compute_dtype, flops

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MOST_ROWS = 3000
"""Rows a fit looks at, evenly picked: six numbers do not get better from more, and errors are over all rows."""

FORMULAS = {
    "gemm": "t = overhead_s + [(2 (m + m_0)(n + n_0)(k + k_0) / flop_per_s)^4 + (bytes / bytes_per_s)^4]^(1/4)",
    "moe_gemm": "t = overhead_s + [(6 hidden ffn (tokens top_k + tokens_0) / shards / flop_per_s)^4"
    " + (bytes / bytes_per_s)^4]^(1/4)",
}


def product_fits(table: Table, device: Device) -> list[Fit | Unfitted]:
    """One roofline over all rows; none with fewer rows than coefficients and one."""
    fit = attempt("roofline", {}, lambda: _roofline_fit(table, device))
    return [] if fit is None else [fit]


def _roofline_fit(table: Table, device: Device) -> Fit | None:
    axes, seconds = rows_of(table)
    names = list(MODELS[table.family].start)
    start = np.array(list(MODELS[table.family].start.values()))
    if len(seconds) <= len(names):
        return None
    most = np.array([_most(name, table, device) for name in names])
    found = _fitted(table, axes, seconds, np.ones(len(seconds), dtype=bool), most)
    predicted = _priced(table, axes, found)
    error = quality("all rows were fitted", predicted, seconds)
    if error is None:
        return None
    coefficients = {name: short(value) for name, value in zip(names, found.tolist(), strict=True)}
    family = FAMILIES[table.family]
    at = {axis: int(axes[axis][0]) for axis in family.axes if len(np.unique(axes[axis])) == 1}
    held = held_out(lambda kept: _priced(table, axes, _fitted(table, axes, seconds, kept, most)), seconds, len(names))
    piece = Piece(rows=len(seconds), ranges=ranges(axes), coefficients={**coefficients})
    return Fit(
        table=key_of(table),
        form="roofline",
        formula=FORMULAS.get(table.family, f"t = the roofline of {table.family} in profiles/roofline.py"),
        at=at,
        pieces=[piece],
        derived=finite(_utilisation(table, axes, seconds, coefficients, device)),
        at_bound=[name for name, value in zip(names, at_bound(found, start, most).tolist(), strict=True) if value],
        r_squared=r_squared(predicted, seconds),
        error=error,
        held_out=held,
    )


def _utilisation(
    table: Table, axes: Axes, seconds: Floats, coefficients: dict[str, float], device: Device
) -> dict[str, float]:
    """The fitted rates and the best single row against what the device states."""
    peak, memory = device.peak_flop_per_s.get(compute_dtype(table.dtype)), device.memory_bandwidth_bytes_per_s
    work = flops(table.family, axes)
    best = {} if work is None else {"best_row_flop_per_s": short(float((work / seconds).max()))}
    shares = {}
    if peak and "flop_per_s" in coefficients:
        shares["utilisation_of_peak"] = short(coefficients["flop_per_s"] / peak)
    if peak and best:
        shares["best_row_utilisation_of_peak"] = short(best["best_row_flop_per_s"] / peak)
    if memory and "bytes_per_s" in coefficients:
        shares["utilisation_of_memory"] = short(coefficients["bytes_per_s"] / memory)
    return best | shares


def _most(name: str, table: Table, device: Device) -> float:
    """No rate above what the device states: a fit that trades it for an offset describes no machine."""
    stated = {
        "flop_per_s": device.peak_flop_per_s.get(compute_dtype(table.dtype)),
        "bytes_per_s": device.memory_bandwidth_bytes_per_s,
    }.get(name)
    return stated if stated is not None else np.inf


def _fitted(table: Table, axes: Axes, seconds: Floats, kept: Bools, most: Floats) -> Floats:
    chosen = np.flatnonzero(kept)
    chosen = chosen[np.unique(np.linspace(0, len(chosen) - 1, min(len(chosen), MOST_ROWS)).astype(np.int64))]
    rows = np.zeros(len(seconds), dtype=bool)
    rows[chosen] = True
    some = pick(axes, rows)
    start = np.array(list(MODELS[table.family].start.values()))
    return fit_curved(lambda found: _priced(table, some, found), start, most, seconds[rows])


def _priced(table: Table, axes: Axes, found: Floats) -> Floats:
    model = MODELS[table.family]
    named = dict(zip(model.start, found.tolist(), strict=True))
    return model.seconds(axes, named, float(DTYPE_BYTES[table.dtype]))
