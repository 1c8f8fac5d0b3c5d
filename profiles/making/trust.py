"""How far a table may be trusted: its error on rows that were left out of the prediction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from profiles.beyond import seconds_beyond
from profiles.document import HeldOut, Roofline
from profiles.encoder import Fitted, surface, surface_seconds
from profiles.families import Family
from profiles.making.curves import rising_curves
from profiles.making.monotone import lines
from profiles.making.repeats import merge_repeats, positions
from profiles.making.siblings import have_siblings
from profiles.roofline import fit_roofline, modelled_seconds
from profiles.table import CostTable

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

REGIONS = (
    ("under 10 us", 0.0, 1e-5),
    ("10 to 100 us", 1e-5, 1e-4),
    ("100 us to 1 ms", 1e-4, 1e-3),
    ("1 to 10 ms", 1e-3, 1e-2),
    ("over 10 ms", 1e-2, np.inf),
)
FEWEST_IN_REGION = 30
SAMPLED, MOST_FOLDS = 2000, 8


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


def leave_one_out(
    table: CostTable, columns: Mapping[str, Ints], seconds: Floats, element_bytes: float
) -> list[HeldOut]:
    """Errors over rows as they were read (repeats and spikes included), each priced from a table made without it.

    1. One value of the axis along the curves left out everywhere: what a lookup between two measured sizes is off.
    2. One value of each outer axis left out everywhere.
    3. Where rows have siblings, one row left out: its curve and its siblings are there, it is not.
    4. The first again, by region of measured time.

    Values are left out every second at once, so that neighbours stay; rows are drawn (seed 0, at most SAMPLED) and left
    out at most 5 % at once. What has no second neighbour is not scored. `table` gives the family and the pace.
    """
    family = table.family
    keys, own, _ = merge_repeats(columns, seconds, family.axes)
    place = positions(keys, columns, family.axes)

    def price_without(gone: Bools) -> Floats:
        rest, wanted = ({axis: column[part] for axis, column in keys.items()} for part in (~gone, gone))
        made = rising_curves(family, rest, own[~gone], element_bytes, table.pacing.multiprocessors, wanted)
        asked = CostTable(family, made.columns, made.seconds, (), table.pacing)
        return asked.look_up({axis: column.astype(np.float64) for axis, column in wanted.items()}).seconds

    def scored(what: str, parts: Iterable[Bools]) -> tuple[HeldOut, Floats]:
        predicted = np.full(len(own), np.nan)
        for gone in parts:
            if gone.any() and not gone.all():
                predicted[gone] = price_without(gone)
        return held_out(what, predicted[place], seconds), predicted[place]

    along, alone = scored(f"one value of {family.along}", _every_second(keys[family.along]))
    errors = [along]
    errors += [scored(f"one value of {axis}", _every_second(keys[axis]))[0] for axis in family.outer]
    if have_siblings(family, keys):
        errors.append(scored("one row", _drawn(family, keys))[0])
    return [*errors, *_by_duration(along.held_out, alone, seconds)]


def _every_second(column: Ints) -> Iterator[Bools]:
    """Rows with every second value strictly inside the column's range, then those with the others."""
    values, number = np.unique(column, return_inverse=True)
    inside = (number > 0) & (number < len(values) - 1)
    yield from (inside & (number % 2 == part) for part in (0, 1))


def _drawn(family: Family, keys: Mapping[str, Ints]) -> Iterator[Bools]:
    """Rows strictly inside their curves, at most SAMPLED and a twentieth of all at once."""
    many = len(keys[family.along])
    inner = np.sort(np.concatenate([line[1:-1] for line in lines(keys, family.along)]))
    drawn = np.random.default_rng(0).permutation(inner)[:SAMPLED]
    folds = min(MOST_FOLDS, -(-20 * len(drawn) // many))
    for fold in range(folds):
        gone = np.zeros(many, dtype=bool)
        gone[drawn[fold::folds]] = True
        yield gone


def _by_duration(what: str, predicted: Floats, seconds: Floats) -> list[HeldOut]:
    """The errors of rows of each region of measured time that holds at least FEWEST_IN_REGION of them."""
    known, found = np.isfinite(predicted), []
    for name, low, high in REGIONS:
        inside = known & (seconds >= low) & (seconds < high)
        if np.count_nonzero(inside) >= FEWEST_IN_REGION:
            found.append(held_out(what, predicted[inside], seconds[inside]).model_copy(update={"region": name}))
    return found


def fitted_roofline(table: CostTable, element_bytes: float, kept: CostTable | None = None) -> Roofline:
    """The family's utilisation model fitted to all rows, and its error on the largest rows when fitted without them.

    `kept` are the rows that the profile will hold, over which the error of the fit is stated; by default all.

    Held out are the rows above a quarter of the largest value along the curves; scored are those at the largest
    value of their curve, priced as lookups price them, from the last row kept (`profiles.beyond`).
    """
    family = table.family
    axes = {axis: column.astype(np.float64) for axis, column in table.columns.items()}
    coefficients = fit_roofline(family.name, axes, table.seconds, element_bytes)
    stored = kept or table
    axes = {axis: column.astype(np.float64) for axis, column in stored.columns.items()}
    fit = held_out("nothing", modelled_seconds(family.name, axes, coefficients, element_bytes), stored.seconds)
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
