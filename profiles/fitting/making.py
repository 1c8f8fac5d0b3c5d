"""From rows and a formula to a `Fit`: what every family shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from profiles.document import Table
from profiles.errors import shown
from profiles.fitting.document import Fit, Piece, TableKey
from profiles.fitting.quality import held_out, quality, r_squared, short
from profiles.fitting.robust import fit_linear

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Axes = Mapping[str, Floats]
Named = dict[str, float | None]


@dataclass(frozen=True)
class Unfitted:
    """A fit that was not made: of which form, over which rows, and why. `form` is empty for rows no fit takes."""

    form: str
    at: Mapping[str, int]
    reason: str


def attempt(form: str, at: Mapping[str, int], make: Callable[[], Fit | None]) -> Fit | Unfitted | None:
    """What `make` gives; rows whose numbers leave the range of floating point are said, not raised."""
    try:
        with np.errstate(all="ignore"):
            return make()
    except ValidationError:
        return Unfitted(form, at, "its numbers are not finite: rows or stated rates are beyond what can be computed")
    except (ValueError, RuntimeError, ArithmeticError, np.linalg.LinAlgError) as error:
        return Unfitted(form, at, f"it cannot be computed: {shown(' '.join(str(error).split()))}")


def linear_fit(
    table: Table,
    axes: Axes,
    seconds: Floats,
    terms: Floats,
    *,
    form: str,
    formula: str,
    at: dict[str, int],
    named: Callable[[Floats], Named],
    derived: Callable[[Floats], dict[str, float]] | None = None,
) -> Fit | Unfitted | None:
    """A fit of seconds to a sum of `terms` (n, k) with coefficients >= 0; None with fewer than k + 1 rows."""

    def make() -> Fit | None:
        if len(seconds) <= terms.shape[1]:
            return None
        found = fit_linear(terms, seconds)
        held = held_out(lambda kept: terms @ fit_linear(terms[kept], seconds[kept]), seconds, terms.shape[1])
        error = quality("all rows were fitted", terms @ found, seconds)
        if error is None:
            return None
        return Fit(
            table=key_of(table),
            form=form,
            formula=formula,
            at=at,
            pieces=[Piece(rows=len(seconds), ranges=ranges(axes), coefficients=named(found))],
            derived=finite(derived(found)) if derived else {},
            r_squared=r_squared(terms @ found, seconds),
            error=error,
            held_out=held,
        )

    return attempt(form, at, make)


def finite(derived: Mapping[str, float]) -> dict[str, float]:
    """Derived numbers without those beyond floating point, as a share of a stated rate near 0 is."""
    return {name: value for name, value in derived.items() if np.isfinite(value)}


def key_of(table: Table) -> TableKey:
    """The four words that name a table."""
    return TableKey(family=table.family, dtype=table.dtype, backend=table.backend, workload=table.workload)


def ranges(axes: Axes) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of each axis."""
    return {axis: (float(column.min()), float(column.max())) for axis, column in axes.items()}


def rate(seconds_per_unit: float) -> float | None:
    """Units per second, None if there is no growth."""
    return short(1.0 / seconds_per_unit) if seconds_per_unit > 0 else None


def rows_of(table: Table) -> tuple[dict[str, Floats], Floats]:
    """The measured rows as float64 columns and seconds; held rows carry a neighbour's time and are left out."""
    own = np.ones(len(table.latency_s), dtype=bool)
    own[table.estimated_rows] = False
    axes = {axis: np.asarray(column, dtype=np.float64)[own] for axis, column in table.columns.items()}
    return axes, np.asarray(table.latency_s, dtype=np.float64)[own]


def groups(axes: Axes, by: tuple[str, ...]) -> list[tuple[dict[str, int], Bools]]:
    """The rows of each combination of values of the axes `by`, sorted, as masks."""
    keys = np.stack([axes[axis] for axis in by], axis=1)
    found, member = np.unique(keys, axis=0, return_inverse=True)
    return [
        (dict(zip(by, (int(value) for value in key), strict=True)), member.reshape(-1) == number)
        for number, key in enumerate(found)
    ]


def pick(axes: Axes, rows: Bools) -> dict[str, Floats]:
    """The rows of a mask."""
    return {axis: column[rows] for axis, column in axes.items()}
