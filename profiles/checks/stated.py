"""Numbers that a profile derived from its rows and that its rows deny: the rows were changed afterwards."""

from __future__ import annotations

import numpy as np

from profiles.checks.finding import Finding, as_axes, count, title
from profiles.document import ProfileDocument, Table
from profiles.families import DTYPE_BYTES
from profiles.roofline import modelled_seconds

TOLERANCE = 0.1


def contradicted_errors(number: int, table: Table) -> list[Finding]:
    """An error if the stored roofline is off its own rows by a tenth more, in the median, than it says.

    The formula is compared with the rows it was fitted to, so any common factor above 1.1 on times shows, and on sizes
    too where they decide the time.
    """
    if table.roofline is None:
        return []
    coefficients, stated = dict(table.roofline.coefficients), table.roofline.fit.bias
    predicted = modelled_seconds(table.family, as_axes(table), coefficients, float(DTYPE_BYTES[table.dtype]))
    factor = float(np.median(predicted / np.asarray(table.latency_s))) / (1.0 + stated)
    if abs(np.log(factor)) <= np.log1p(TOLERANCE):
        return []
    return [
        Finding(
            "contradicted_roofline",
            "error",
            title(table),
            f"tables.{number}.roofline",
            f"the stored formula gives {factor:.3g} times the rows' seconds in the median",
            f"{1 + stated:.3g} times, as its own fit says",
            "rows were changed after the fit: undo that, or remove roofline and errors and write the profile again "
            "with plan profile check -o",
        )
    ]


def untested_prices(document: ProfileDocument) -> list[Finding]:
    """A note if tables do not say how far their prices are off."""
    bare = [number for number, table in enumerate(document.tables) if not table.errors]
    if not bare:
        return []
    what = f"not checked: prices of {count(len(bare), 'table')} against rows left out, which they do not state"
    where, fix = f"tables.{bare[0]}.errors", "plan profile check PROFILE -o FILE computes and writes them"
    return [Finding("not_checked", "note", "", where, what, "leave-one-out errors", f"{fix}; it takes a while")]
