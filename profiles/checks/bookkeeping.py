"""What a table counts about its own rows, where the numbers contradict each other: they were edited or made up."""

from __future__ import annotations

from collections.abc import Iterator

from profiles.checks.finding import Finding, title
from profiles.document import HeldOut, Table


def contradicted_counts(number: int, table: Table) -> list[Finding]:
    """Warnings: fewer rows read than came of them, p90 below the median, estimated rows named twice or too few."""
    counts, rows, place = table.counts, len(table.latency_s), f"tables.{number}"
    name = title(table)

    def odd(where: str, what: str, expected: str) -> Finding:
        fix = "write what happened, or leave the field out"
        return Finding("contradicted_counts", "warning", name, f"{place}.{where}", what, expected, fix)

    found = []
    accounted = (
        rows - counts.filled + counts.repeats_merged + counts.not_monotone_dropped + counts.thinned + counts.refused
    )
    if counts.read < accounted:
        what = f"{counts.read} rows were read, but {accounted} are here or were merged, dropped, thinned or refused"
        found.append(odd("counts.read", what, f"at least {accounted}"))
    twice = len(table.estimated_rows) - len(set(table.estimated_rows))
    if twice:
        what = f"{twice} of {len(table.estimated_rows)} numbers repeat an earlier one"
        found.append(odd("estimated_rows", what, "each row once"))
    for where, error in _errors(table):
        if error.p90 < error.median:
            what = f"p90 {error.p90:.3g} is below the median {error.median:.3g}"
            found.append(odd(f"{where}.p90", what, "at least the median"))
    return found


def _errors(table: Table) -> Iterator[tuple[str, HeldOut]]:
    """Every error that a table states, with its path."""
    if table.repeat_spread is not None:
        yield "repeat_spread", table.repeat_spread
    yield from ((f"errors.{place}", error) for place, error in enumerate(table.errors))
    if table.roofline is not None:
        yield "roofline.fit", table.roofline.fit
        if table.roofline.extremes is not None:
            yield "roofline.extremes", table.roofline.extremes
