"""What a profile says that cannot be, or that a reader should know before trusting it: one kind of fault a file.

`check_profile` runs all of them over one document.
"""

from __future__ import annotations

import numpy as np

from profiles.checks.bookkeeping import contradicted_counts
from profiles.checks.copies import copied_tables
from profiles.checks.coverage import uncovered
from profiles.checks.curves import doubtful_curves
from profiles.checks.dtypes import unknown_peaks
from profiles.checks.finding import Finding, worst_first
from profiles.checks.floors import unlikely_starts
from profiles.checks.grids import holes
from profiles.checks.messages import odd_messages
from profiles.checks.physics import beyond_physics, not_checked
from profiles.checks.ranks import impossible_ranks
from profiles.checks.stated import contradicted_errors, untested_prices
from profiles.document import ProfileDocument


def check_profile(document: ProfileDocument) -> list[Finding]:
    """Every finding about a document that its schema let through: errors first, then warnings, then notes."""
    # Seconds of 1e-300 are a file's right, and rates beyond floating point are findings, not warnings of numpy.
    with np.errstate(all="ignore"):
        return worst_first(_found(document))


def _found(document: ProfileDocument) -> list[Finding]:
    found: list[Finding] = []
    for number, table in enumerate(document.tables):
        found += impossible_ranks(number, table)
        found += beyond_physics(number, table, document.device)
        found += unlikely_starts(number, table)
        found += doubtful_curves(number, table)
        found += holes(number, table)
        found += contradicted_errors(number, table)
        found += contradicted_counts(number, table)
    found += odd_messages(document)
    found += copied_tables(document)
    found += uncovered(document)
    found += unknown_peaks(document.device)
    found += not_checked(document)
    found += untested_prices(document)
    return found
