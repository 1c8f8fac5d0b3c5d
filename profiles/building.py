"""From rows as they were read to a table of a profile, with the same policy whatever the source."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from profiles.document import Counts, HeldOut, Table
from profiles.families import DTYPE_BYTES, FAMILIES
from profiles.monotone import hold_ends, rising_rows
from profiles.repeats import merge_repeats
from profiles.roofline import MODELS
from profiles.table import CostTable
from profiles.thin import thinned_rows
from profiles.trust import fitted_roofline, held_out, leave_one_out

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MERGED = "repeats of one key: their median is kept; how far they lie apart is repeat_spread"
RISING = (
    "along {along}, each curve keeps the largest set of rows that do not get faster with size (spikes fall out); "
    "an end that falls out is held at the nearest kept time"
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


def build_table(raw: RawRows, *, tolerance: float = 0.0, digits: int = 6) -> Table:
    """Merge repeats, keep rows that rise, thin to `tolerance` (0 keeps all), and state the errors of the result.

    Seconds are rounded to `digits` significant digits, far below the noise of any measurement.
    """
    family = FAMILIES[raw.family]
    columns, seconds, centre = merge_repeats(raw.columns, raw.seconds, family.axes)
    spread = _spread(raw.seconds, centre)
    merged = len(raw.seconds) - len(seconds)
    seconds = np.array([float(f"{value:.{digits - 1}e}") for value in seconds.tolist()])
    policy = [*raw.policy, MERGED, RISING.format(along=family.along)]
    keep = np.ones(len(seconds), dtype=bool)
    if raw.family == "encoder_attention":
        # Cross attention is priced along heads, so that axis must rise too.
        keep = rising_rows(columns, seconds, "heads", keep)
        policy.append(RISING.format(along="heads"))
    keep = rising_rows(columns, seconds, family.along, keep)
    seconds, keep, held = hold_ends(columns, seconds, family.along, keep)
    dropped = int((~keep).sum())
    if tolerance > 0:
        keep = thinned_rows(columns, seconds, family.along, tolerance, keep)
        policy.append(f"thinned: rows that their kept neighbours give back within {tolerance:.1%} are left out")
    thinned = int((~keep).sum()) - dropped
    columns, seconds, held = {axis: column[keep] for axis, column in columns.items()}, seconds[keep], held[keep]
    table = CostTable(family, columns, seconds, np.flatnonzero(held))
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
            not_monotone_dropped=dropped,
            thinned=thinned,
            refused=raw.refused,
        ),
        repeat_spread=spread,
        errors=leave_one_out(table, raw.columns, raw.seconds),
        roofline=fitted_roofline(table, float(DTYPE_BYTES[raw.dtype]))
        if raw.family in MODELS and len(seconds) >= 8
        else None,
        columns={axis: columns[axis].tolist() for axis in family.axes},
        latency_s=seconds.tolist(),
        held_rows=np.flatnonzero(held).tolist(),
    )


def _spread(seconds: Floats, centre: Floats) -> HeldOut | None:
    """How far repeats lie from their median; None if nothing was repeated."""
    repeated = np.isfinite(centre)
    return held_out("repeats against their median", seconds[repeated], centre[repeated]) if repeated.any() else None
