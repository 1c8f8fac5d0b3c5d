"""From rows as they were read to a table of a profile, with the same policy whatever the source."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from profiles.document import Counts, HeldOut, Pace, Table
from profiles.families import DTYPE_BYTES, FAMILIES
from profiles.making.curves import rising_curves
from profiles.making.pace_fit import fit_pace
from profiles.making.repeats import merge_repeats
from profiles.making.thin import thinned_rows
from profiles.making.trust import fitted_roofline, held_out, leave_one_out
from profiles.pace import Pacing
from profiles.roofline import MODELS
from profiles.table import CostTable

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MERGED = "repeats of one key: their median is kept; how far they lie apart is repeat_spread"
RISING = "along {along}, each curve keeps the largest set of rows that do not get faster with size"
HELD = (
    "spikes and steps back fall out; one within a tenth of its kept neighbours stays at the nearer of their times, and "
    "an end that falls out is held at the nearest kept time"
)
ESTIMATED = (
    "what falls out and what was not measured between two rows of a curve is estimated from rows of the same size on "
    "other curves, between the kept neighbours"
)


@dataclass(frozen=True)
class RawRows:
    """Rows of one table as read: integer columns and seconds, repeats and spikes included."""

    family: str
    dtype: str
    columns: dict[str, Ints]
    seconds: Floats
    provenance: str
    kernels: tuple[str, ...] = ()
    backend: str = ""
    workload: str = ""
    policy: tuple[str, ...] = field(default=())
    refused: int = 0


def build_table(raw: RawRows, *, tolerance: float = 0.0, digits: int = 6, multiprocessors: int | None = None) -> Table:
    """Merge repeats, keep rows that rise, thin to `tolerance` (0 keeps all), and state the errors of the result.

    Seconds are rounded to `digits` significant digits, far below the noise of any measurement. `multiprocessors` of
    the device, where it is known, lets attention and products be interpolated in whole waves.
    """
    family, element_bytes = FAMILIES[raw.family], float(DTYPE_BYTES[raw.dtype])
    columns, seconds, centre = merge_repeats(raw.columns, raw.seconds, family.axes)
    merged = len(raw.seconds) - len(seconds)
    curves = rising_curves(family, columns, seconds, element_bytes, multiprocessors)
    policy = [*raw.policy, MERGED, RISING.format(along=family.along), ESTIMATED if curves.by_siblings else HELD]
    times = np.array([float(f"{value:.{digits - 1}e}") for value in curves.seconds.tolist()])
    columns, estimated = curves.columns, curves.estimated
    pacing = Pacing(family, fit_pace(family, columns, times, multiprocessors), multiprocessors)
    whole = CostTable(family, columns, times, np.flatnonzero(estimated), pacing)
    errors = leave_one_out(whole, raw.columns, raw.seconds, element_bytes)
    if tolerance > 0:
        keep = thinned_rows(columns, times, pacing, tolerance)
        policy.append(f"thinned: rows that their kept neighbours give back within {tolerance:.1%} are left out")
        columns, times, estimated = {a: c[keep] for a, c in columns.items()}, times[keep], estimated[keep]
    table = CostTable(family, columns, times, np.flatnonzero(estimated), pacing)
    has_model = raw.family in MODELS and len(times) >= 8
    return Table(
        family=raw.family,
        dtype=raw.dtype,
        backend=raw.backend,
        workload=raw.workload,
        kernels=sorted(raw.kernels),
        provenance=raw.provenance,
        policy=policy,
        counts=Counts(
            read=len(raw.seconds) + raw.refused,
            repeats_merged=merged,
            not_monotone_dropped=curves.dropped,
            replaced=curves.replaced,
            thinned=whole.rows - table.rows,
            filled=curves.filled,
            refused=raw.refused,
        ),
        repeat_spread=_spread(raw.seconds, centre),
        errors=errors,
        roofline=fitted_roofline(whole, element_bytes, table) if has_model else None,
        pace=None if pacing.plain else Pace(weights=dict(pacing.weights), multiprocessors=multiprocessors),
        columns={axis: columns[axis].tolist() for axis in family.axes},
        latency_s=times.tolist(),
        estimated_rows=np.flatnonzero(estimated).tolist(),
    )


def _spread(seconds: Floats, centre: Floats) -> HeldOut | None:
    """How far repeats lie from their median; None if nothing was repeated."""
    repeated = np.isfinite(centre)
    return held_out("repeats against their median", seconds[repeated], centre[repeated]) if repeated.any() else None
