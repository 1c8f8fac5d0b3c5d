"""Holes: what lies between measured rows and is refused all the same."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profiles.checks.finding import Finding, count, title
from profiles.document import Table
from profiles.table import Grid

Bools = npt.NDArray[np.bool_]


def holes(number: int, table: Table) -> list[Finding]:
    """Cells of the outer grid without a curve (odd if they have one on both sides), and curves that end early."""
    rows = table.cost_table()
    family, place = rows.family, f"tables.{number}.columns"
    cells = missing = inside = curves = short = 0
    where, shortest = "", ""
    for group, grid in rows.grids.items():
        present = grid.curve_of_cell.reshape(grid.shape) >= 0
        enclosed = ~present & _between(present)
        cells, missing, inside = cells + present.size, missing + int((~present).sum()), inside + int(enclosed.sum())
        gap = enclosed if enclosed.any() else ~present
        if gap.any() and (enclosed.any() or not where):
            first = np.argwhere(gap)[0]
            where = _words(family.exact, group) + _words(family.outer, _cell(grid, first))
        last, largest = grid.along[grid.stop], int(grid.along.max())
        curves, short = curves + len(last), short + int((2 * last < largest).sum())
        if not shortest and (2 * last < largest).any():
            row = int(np.argmin(last))
            cell = np.unravel_index(int(np.flatnonzero(grid.curve_of_cell == row)[0]), grid.shape)
            at = _words(family.exact, group) + _words(family.outer, _cell(grid, np.asarray(cell)))
            shortest = f"{at}ends at {family.along} {last[row]} of {largest}"
    found = []
    if missing:
        what = f"{missing} of {count(cells, 'cell')} of {' x '.join(family.outer)} without a curve, "
        what += f"{inside} of them with curves on both sides; the first at {where.strip(' ,')}"
        found.append(
            Finding(
                "missing_cells", "warning" if inside else "note", title(table), place, what, "a full grid",
                "measure them, or lookups there are refused",
            )
        )  # fmt: skip
    if short:
        what = f"{short} of {count(curves, 'curve')} end before half of the largest {family.along}: {shortest}"
        fix = "measure on, or lookups beyond are refused (or modelled under roofline)"
        found.append(Finding("short_curves", "note", title(table), place, what, "curves of one length", fix))
    return found


def _between(present: Bools) -> Bools:
    """Cells that have a curve on both sides along some axis."""
    between = np.zeros_like(present)
    for axis in range(present.ndim):
        before = np.maximum.accumulate(present, axis=axis)
        after = np.flip(np.maximum.accumulate(np.flip(present, axis), axis=axis), axis)
        between |= before & after
    return between


def _cell(grid: Grid, cell: npt.NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(int(knots[index]) for knots, index in zip(grid.knots, cell, strict=True))


def _words(axes: tuple[str, ...], values: tuple[int, ...]) -> str:
    return "".join(f"{axis} {value}, " for axis, value in zip(axes, values, strict=True))
