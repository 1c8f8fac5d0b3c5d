"""Rows of a published table by the words of their columns, whatever their case and punctuation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from planner.csv_rows import CsvRow, csv_rows
from planner.errors import BadInputError

_BETWEEN = re.compile(r"[^a-z0-9@#]+")


def table_rows(path: Path, where: str, needed: tuple[str, ...]) -> Iterator[CsvRow]:
    """Every row, columns named as ``total_time_100_step``; other columns than ``needed`` may be there too.

    Raises BadInputError with the line: no CSV, a column that is missing or there twice, no row.
    """
    for line, cells, wrong in csv_rows(path, (), where, others=True):
        named: dict[str, str] = {}
        for heading, cell in cells.items():
            name = _BETWEEN.sub("_", heading.lower()).strip("_")
            if name in named:
                raise wrong(f"two columns are called {name[:60]}", "duplicate_id")
            named[name] = cell
        missing = next((name for name in needed if name not in named), None)
        if missing is not None:
            message = f"{path.name} line 1: expected a table with the columns {', '.join(needed)}: no {missing}"
            raise BadInputError(message, code="missing_field", where=where)
        yield CsvRow(line, named, wrong)
