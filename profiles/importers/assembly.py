"""What every importer ends in: rows of a foreign file become the tables of one profile, with a report of the rest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from profiles.document import Device, ProfileDocument, Provenance, Table
from profiles.errors import ProfileError, shown
from profiles.making.building import RawRows, build_table
from profiles.table import LARGEST_AXIS_VALUE

_SHORTEST_S, _LONGEST_S = 1e-12, 1e6
_PLACE = re.compile(r"^.*?:\d+: ")


@dataclass(frozen=True)
class Options:
    """What the user says beside the files; each format takes some of it and refuses the rest."""

    system: str | None = None
    name: str | None = None
    families: tuple[str, ...] = ()
    buffer_bytes: int | None = None


@dataclass(frozen=True)
class Report:
    """What was made of the input: `notes` on what was read, assumed and dropped, `refused` on each part that was not
    read, with its line and reason."""

    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Imported(NamedTuple):
    """A profile made from foreign files, and the report on them."""

    document: ProfileDocument
    report: Report


@dataclass(frozen=True)
class Found:
    """What one importer found in its files, before it is a profile.

    `notes`, on what was assumed and left out, go to stderr and into the profile.
    """

    rows: Sequence[RawRows]
    provenance: Provenance
    device: Device
    notes: Sequence[str] = ()
    refused: Sequence[str] = ()


def assemble(found: Found, default_name: str, options: Options, rank: Callable[[str], int] = lambda _: 0) -> Imported:
    """The profile of `found`, cut to the families asked for.

    Raises `ProfileError` (missing_field) if no row is left: the message then holds the first reasons, those of the
    lowest `rank` first.
    """
    rows, refused = within_bounds(found.rows)
    wanted = [raw for raw in rows if raw.family in (options.families or (raw.family,))]
    if not wanted:
        if rows:
            has = ", ".join(sorted({raw.family for raw in rows}))
            raise ProfileError(f"no row of the families asked for: there are {has}", code="missing_field")
        unlike = f"no line of {shown(', '.join(found.provenance.files))} looks like one of this format"
        reasons = "; ".join(reasons_of([*found.refused, *refused], rank)) or unlike
        raise ProfileError(f"no row could be read: {reasons}", code="missing_field")
    tables = [build_table(raw) for raw in wanted]
    document = ProfileDocument(
        name=options.name or default_name,
        device=found.device,
        provenance=[found.provenance],
        notes=list(found.notes),
        tables=sorted(tables, key=lambda table: table.key),
    )
    counted = f"{sum(len(raw.seconds) for raw in wanted)} rows read, {len(found.refused) + len(refused)} lines refused"
    notes = (*found.notes, *(summary(table) for table in document.tables), counted)
    return Imported(document, Report(notes, (*found.refused, *refused)))


def within_bounds(rows: Iterable[RawRows]) -> tuple[list[RawRows], list[str]]:
    """The tables without rows that no profile can hold, and one line for each table that had some.

    Axes are 1 to `LARGEST_AXIS_VALUE`, times above 0 and at most 1e6 s. Tables left empty are dropped.
    """
    kept, refused = [], []
    for raw in rows:
        good = np.isfinite(raw.seconds) & (raw.seconds >= _SHORTEST_S) & (raw.seconds <= _LONGEST_S)
        for column in raw.columns.values():
            good &= (column >= 1) & (column <= LARGEST_AXIS_VALUE)
        if (count := int((~good).sum())) > 0:
            name = "/".join(filter(None, (raw.family, raw.dtype, raw.backend, raw.workload)))
            axes = f"expected {', '.join(raw.columns)} in 1..{LARGEST_AXIS_VALUE}"
            times = f"a time in {_SHORTEST_S:g}..{_LONGEST_S:g} s"
            refused.append(f"{raw.provenance}: {name}: {count} rows refused: {axes} and {times}")
            columns = {axis: column[good] for axis, column in raw.columns.items()}
            raw = replace(raw, columns=columns, seconds=raw.seconds[good])
        if len(raw.seconds):
            kept.append(raw)
    return kept, refused


def summary(table: Table) -> str:
    """One line on what became of the rows of a table."""
    name, counts = "/".join(part for part in table.key if part), table.counts
    spread = table.repeat_spread
    apart = f" (p90 {spread.p90:.1%} from their median)" if spread and counts.repeats_merged else ""
    return (
        f"{name}: {counts.read} rows read, {counts.repeats_merged} repeats merged{apart}, "
        f"{counts.not_monotone_dropped} that get faster with size dropped, {counts.replaced} replaced by estimates, "
        f"{counts.thinned} thinned, "
        f"{len(table.latency_s)} kept ({table.provenance})"
    )


def reasons_of(refused: Iterable[str], rank: Callable[[str], int]) -> list[str]:
    """Up to three different reasons, each where it first occurs: by rank, then what occurs most often."""
    count: Counter[str] = Counter()
    place: dict[str, str] = {}
    for line in refused:
        reason = _PLACE.sub("", line)
        count[reason] += 1
        place.setdefault(reason, line)
    order = sorted(count, key=lambda reason: (rank(reason), -count[reason]))
    return [place[reason] + (f" ({count[reason]} lines)" if count[reason] > 1 else "") for reason in order[:3]]


def slug(path: str) -> str:
    """A profile name from a file's name."""
    text = re.sub(r"[^a-z0-9._-]+", "-", Path(path).stem.lower()).strip("-._")
    return text[:100] or "imported"


def known_families(families: Collection[str], has: Collection[str]) -> None:
    """Raise `ProfileError` (out_of_range) for a family that there is not, or that this format never has."""
    for family in families:
        if family not in has:
            raise ProfileError(
                f"family {family!r} does not occur in this format: it has {', '.join(has)}",
                code="out_of_range",
                where="family",
            )
