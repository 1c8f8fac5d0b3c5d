"""What a profile says that cannot be, or that a reader should know before trusting it: one kind of fault a file.

`check_profile` runs all of them over one document.
"""

from __future__ import annotations

from profiles.checks.copies import copied_tables
from profiles.checks.coverage import uncovered
from profiles.checks.curves import doubtful_curves
from profiles.checks.finding import Finding, worst_first
from profiles.checks.floors import unlikely_starts
from profiles.checks.grids import holes
from profiles.checks.messages import odd_messages
from profiles.checks.physics import beyond_physics, not_checked
from profiles.checks.stated import contradicted_errors
from profiles.document import ProfileDocument


def check_profile(document: ProfileDocument) -> list[Finding]:
    """Every finding about a document that its schema let through: errors first, then warnings, then notes."""
    found: list[Finding] = []
    for number, table in enumerate(document.tables):
        found += beyond_physics(number, table, document.device)
        found += unlikely_starts(number, table)
        found += doubtful_curves(number, table)
        found += holes(number, table)
        found += contradicted_errors(number, table)
    found += odd_messages(document)
    found += copied_tables(document)
    found += uncovered(document)
    found += not_checked(document)
    return worst_first(found)
