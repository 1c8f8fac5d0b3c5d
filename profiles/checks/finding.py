"""One thing found in a profile, and the names such things have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from profiles.document import Table
from profiles.errors import shown
from profiles.families import FAMILIES

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

CODES: dict[str, str] = {
    "faster_than_device": "a row is faster than the device's stated peak, memory or link allows",
    "faster_than_any_device": "a row is faster than any known device",
    "slower_than_plausible": "the best row of a table uses next to nothing of the device",
    "impossible_ranks": "a collective of one rank, or of ranks that do not share out over their nodes",
    "below_launch": "a row takes less time than the start of any kernel or message",
    "slow_start": "a table's quickest small row takes milliseconds",
    "message_unit": "the bus bandwidth of a collective is far from that of the profile's other collectives",
    "faster_with_size": "steps along a curve get faster with more work",
    "spike": "a row is far off both of its neighbours on a curve",
    "jump": "a step along a curve costs many times what its work grows by",
    "missing_cells": "combinations of the outer axes have no curve",
    "short_curves": "curves end before half of the largest size measured beside them",
    "copied_table": "two tables hold the same seconds",
    "repeats_disagree": "repeats of one key lie far apart",
    "unsure_prices": "prices between rows are far off when a row is left out",
    "contradicted_roofline": "the stored roofline does not fit the rows any more",
    "contradicted_counts": "counts, percentiles or row numbers of a table contradict each other",
    "unknown_dtype": "a peak is stated for a dtype that no table can have",
    "not_covered": "a Zellige problem would ask for rows that are missing",
    "not_checked": "a check needs a number that nobody stated",
}


@dataclass(frozen=True)
class Finding:
    """`code` is a key of `CODES`, `where` a path in the document (`tables.0.latency_s.17`), `table` its name in words.

    An error contradicts physics or the profile itself; a warning is odd; a note is something to know.
    """

    code: str
    severity: Severity
    table: str
    where: str
    what: str
    expected: str
    fix: str


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes; otherwise as they came."""
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def title(table: Table) -> str:
    """A table's name in words, such as `all_gather/fp16/nccl`."""
    return shown("/".join(part for part in table.key if part))


def row_place(number: int, row: int | np.integer) -> str:
    """The path of one row's seconds."""
    return f"tables.{number}.latency_s.{row}"


def row_words(table: Table, row: int | np.integer) -> str:
    """A row's axes and seconds, such as `m 512, n 1536, k 1536: 1.2e-05 s`."""
    at = ", ".join(f"{axis} {table.columns[axis][row]}" for axis in axes_that_vary(table))
    return f"{at}: {table.latency_s[row]:.4g} s"


def axes_that_vary(table: Table) -> list[str]:
    """The family's axes in order, those with one value left out unless that leaves none."""
    axes = FAMILIES[table.family].axes
    return [axis for axis in axes if len(set(table.columns[axis])) > 1] or list(axes)


def as_axes(table: Table) -> dict[str, npt.NDArray[np.float64]]:
    """The columns as float64 arrays."""
    return {axis: np.asarray(column, dtype=np.float64) for axis, column in table.columns.items()}


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 row`, `2 rows`."""
    return f"{number} {one if number == 1 else many or one + 's'}"
