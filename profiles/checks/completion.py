"""What a profile that was written by hand does not say yet: its errors and its formula, from its own rows."""

from __future__ import annotations

import numpy as np

from profiles.document import ProfileDocument, Table
from profiles.families import DTYPE_BYTES
from profiles.making.trust import fitted_roofline, leave_one_out
from profiles.roofline import MODELS

FEWEST_ROWS = 8
"""A formula has up to six coefficients; from fewer rows than this it would fit anything."""


def completed(document: ProfileDocument) -> ProfileDocument:
    """The document with leave-one-out errors and a roofline in each table that has none and rows enough."""
    return document.model_copy(update={"tables": [_completed(table) for table in document.tables]})


def _completed(table: Table) -> Table:
    rows = table.cost_table()
    changes: dict[str, object] = {}
    if not table.errors:
        own = {axis: np.asarray(column, dtype=np.int64) for axis, column in table.columns.items()}
        changes["errors"] = leave_one_out(rows, own, np.asarray(table.latency_s), float(DTYPE_BYTES[table.dtype]))
    if table.roofline is None and table.family in MODELS and rows.rows >= FEWEST_ROWS:
        changes["roofline"] = fitted_roofline(rows, float(DTYPE_BYTES[table.dtype]))
    return table.model_copy(update=changes) if changes else table
