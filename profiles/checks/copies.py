"""The same seconds under two names: a file read twice, or a table pasted and not replaced."""

from __future__ import annotations

from profiles.checks.finding import Finding, title
from profiles.document import ProfileDocument


def copied_tables(document: ProfileDocument) -> list[Finding]:
    """A warning for each table of three or more rows whose seconds are those of an earlier one."""
    seen: dict[tuple[float, ...], int] = {}
    found = []
    for number, table in enumerate(document.tables):
        seconds = tuple(table.latency_s)
        first = seen.setdefault(seconds, number)
        if first != number and len(seconds) >= 3:
            what = f"all {len(seconds)} seconds are those of tables.{first} ({title(document.tables[first])})"
            where, fix = f"tables.{number}.latency_s", "leave out the one that was not measured"
            found.append(Finding("copied_table", "warning", title(table), where, what, "other times", fix))
    return found
