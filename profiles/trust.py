"""How far a table may be trusted: its error on rows that were left out of the prediction."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from profiles.beyond import seconds_beyond
from profiles.document import HeldOut, Roofline
from profiles.encoder import Fitted, surface, surface_seconds
from profiles.monotone import lines
from profiles.roofline import fit_roofline, modelled_seconds
from profiles.table import CostTable

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def held_out(what: str, predicted: Floats, measured: Floats) -> HeldOut:
    """Median and p90 of |predicted / measured - 1| over the rows with a prediction, rounded to four digits."""
    known = np.isfinite(predicted)
    signed = predicted[known] / measured[known] - 1.0
    if not len(signed):
        return HeldOut(held_out=what, rows=0, median=0.0, p90=0.0)
    size = np.abs(signed)
    return HeldOut(
        held_out=what,
        rows=len(size),
        median=_short(np.median(size)),
        p90=_short(np.percentile(size, 90)),
        bias=_short(np.median(signed)),
    )


def _short(value: np.floating) -> float:
    return float(f"{float(value):.3e}")


def leave_one_out(table: CostTable, columns: Mapping[str, Ints], seconds: Floats) -> list[HeldOut]:
    """Errors over rows as they were read (repeats and spikes included): first along the curves, then by outer axis.

    Along the curves a row's own key is left out and its two neighbours predict it; across an outer axis all rows with
    one value of it are left out. Rows at the end of a curve have no second neighbour and are not scored.
    """
    family = table.family
    errors = [held_out(f"one value of {family.along}", _without_own_row(table, columns), seconds)]
    for axis in family.outer:
        predicted = np.full(table.rows, np.nan)
        values = np.unique(table.columns[axis])
        for value in values[1:-1]:
            gone = table.columns[axis] == value
            held = np.flatnonzero(table.held[~gone])
            rest = CostTable(family, {a: c[~gone] for a, c in table.columns.items()}, table.seconds[~gone], held)
            query = {a: c[gone].astype(np.float64) for a, c in table.columns.items()}
            predicted[gone] = rest.look_up(query).seconds
        errors.append(held_out(f"one value of {axis}", predicted, table.seconds))
    return errors


def _without_own_row(table: CostTable, columns: Mapping[str, Ints]) -> Floats:
    """Each row's price from the table without that row: from the neighbours where it is in the table."""
    family = table.family
    own = table.columns
    alone = np.full(table.rows, np.nan)
    for line in lines(own, family.along):
        if len(line) < 3:
            continue
        x, y = np.log(own[family.along][line]), np.log(table.seconds[line])
        share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
        alone[line[1:-1]] = np.exp(y[:-2] + share * (y[2:] - y[:-2]))
    predicted = table.look_up({axis: column.astype(np.float64) for axis, column in columns.items()}).seconds
    place = {key: row for row, key in enumerate(zip(*(own[a].tolist() for a in family.axes), strict=True))}
    rows = zip(*(columns[a].tolist() for a in family.axes), strict=True)
    at = np.array([place.get(key, -1) for key in rows], dtype=np.int64)
    return np.where((at >= 0) & ~table.held[at], alone[at], predicted)


def fitted_roofline(table: CostTable, element_bytes: float) -> Roofline:
    """The family's utilisation model fitted to all rows, and its error on the largest rows when fitted without them.

    Held out are the rows above a quarter of the largest value along the curves; scored are those at the largest
    value of their curve, priced as lookups price them, from the last row kept (`profiles.beyond`).
    """
    family = table.family
    axes = {axis: column.astype(np.float64) for axis, column in table.columns.items()}
    coefficients = fit_roofline(family.name, axes, table.seconds, element_bytes)
    fit = held_out("nothing", modelled_seconds(family.name, axes, coefficients, element_bytes), table.seconds)
    return Roofline(coefficients=coefficients, fit=fit, extremes=_extremes(table, element_bytes))


def _extremes(table: CostTable, element_bytes: float) -> HeldOut | None:
    family = table.family
    along = table.columns[family.along]
    limit = int(along.max()) // 4
    small, largest = along <= limit, along == along.max()
    if not small.any() or np.unique(along[small]).size < 3:
        return None
    rest = CostTable(family, {axis: column[small] for axis, column in table.columns.items()}, table.seconds[small])
    axes = {axis: column.astype(np.float64) for axis, column in rest.columns.items()}
    coefficients = fit_roofline(family.name, axes, rest.seconds, element_bytes)

    def model(some: Mapping[str, Floats]) -> Floats:
        if family.name != "encoder_attention":
            return modelled_seconds(family.name, some, coefficients, element_bytes)
        fitted = Fitted(rest, coefficients, element_bytes)
        surfaces = {d: surface(d, fitted, None) or {} for (d,) in table.grids}
        return surface_seconds(some, surfaces, element_bytes)

    query = {axis: column[largest].astype(np.float64) for axis, column in table.columns.items()}
    predicted = seconds_beyond(rest, query, model)
    return held_out(f"{family.along} > {limit}, asked at {int(along.max())}", predicted, table.seconds[largest])
