"""What a profile that was written by hand does not say yet: its errors and its formula, from its own rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from pydantic import ValidationError

from profiles.checks.finding import title
from profiles.document import HeldOut, ProfileDocument, Roofline, Table
from profiles.families import DTYPE_BYTES
from profiles.making.trust import fitted_roofline, leave_one_out
from profiles.roofline import MODELS

FEWEST_ROWS = 8
"""A formula has up to six coefficients; from fewer rows than this it would fit anything."""


Progress = Callable[[float, str], None]
"""progress(done, what): the share of the tables that is done, and the table that is looked at."""


def _silent(_done: float, _what: str) -> None:
    """No progress shown."""


def completed(document: ProfileDocument, progress: Progress = _silent) -> ProfileDocument:
    """The document with leave-one-out errors and a roofline in each table that has none and rows enough.

    A table of thousands of rows takes seconds. What is beyond floating point stays unstated.
    """
    tables = []
    for number, table in enumerate(document.tables):
        progress(number / len(document.tables), title(table))
        with np.errstate(all="ignore"):
            tables.append(_completed(table))
    return document.model_copy(update={"tables": tables})


def _completed(table: Table) -> Table:
    rows = table.cost_table()
    changes: dict[str, object] = {}
    if not table.errors:
        own = {axis: np.asarray(column, dtype=np.int64) for axis, column in table.columns.items()}
        seconds, size = np.asarray(table.latency_s), float(DTYPE_BYTES[table.dtype])
        errors = _possible(lambda: leave_one_out(rows, own, seconds, size))
        if errors is not None:
            changes["errors"] = errors
    if table.roofline is None and table.family in MODELS and rows.rows >= FEWEST_ROWS:
        roofline = _possible(lambda: fitted_roofline(rows, float(DTYPE_BYTES[table.dtype])))
        if roofline is not None:
            changes["roofline"] = roofline
    return table.model_copy(update=changes) if changes else table


Result = TypeVar("Result", list[HeldOut], Roofline)


def _possible(make: Callable[[], Result]) -> Result | None:
    """What `make` gives, None where its numbers are not finite."""
    try:
        return make()
    except (ValidationError, np.linalg.LinAlgError):
        return None
