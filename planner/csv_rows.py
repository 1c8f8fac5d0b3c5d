"""Rows of a CSV file of others: a header, then one row a line; a fault is told with its line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from planner.errors import BadInputError

MAX_BYTES = 2**24
MOST_SHOWN = 20
"""Characters of a field that a message repeats: it may be a file of another kind."""

_WHOLE = re.compile(r"[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")

Wrong = Callable[[str, str], BadInputError]
"""A fault of a line, from message and code."""


class CsvRow(NamedTuple):
    """The cells of a line by column, stripped, and how to complain of it."""

    line: int
    cells: dict[str, str]
    wrong: Wrong


def csv_rows(path: Path, columns: tuple[str, ...], where: str, *, others: bool = False) -> Iterator[CsvRow]:
    """Every row; the header lists ``columns`` in any order, and no others unless ``others`` are passed over.

    Blank lines are left out. Raises BadInputError: what is no CSV, another header, a row of other length, no row.
    """
    reader = csv.reader(io.StringIO(_text(path, where), newline=""), strict=True)
    header: list[str] | None = None
    rows = 0
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise _fault(path, reader.line_num, where)(f"no CSV: {error}", "wrong_type") from None
        if fields is None:
            break
        wrong = _fault(path, reader.line_num, where)
        cells = [cell.strip() for cell in fields]
        if not any(cells):
            continue
        if header is None:
            _check_header(cells, columns, others, wrong)
            header = cells
            continue
        if len(cells) != len(header):
            raise wrong(f"expected {len(header)} fields, got {len(cells)}", "wrong_type")
        rows += 1
        yield CsvRow(reader.line_num, dict(zip(header, cells, strict=True)), wrong)
    if not rows:
        raise BadInputError(f"{path.name} holds no runs", code="missing_field", where=where)


def whole(text: str, column: str, wrong: Wrong, *, least: int = 1) -> int:
    """A cell that is a whole number of at most 18 digits, from ``least`` on."""
    if not _WHOLE.fullmatch(text) or int(text) < least:
        raise wrong(f"expected {column}, a whole number from {least} on, got {shown(text)}", "wrong_type")
    return int(text)


def number(text: str, column: str, wrong: Wrong, *, least: float, most: float) -> float:
    """A cell that is a decimal number between two positive bounds."""
    if not _DECIMAL.fullmatch(text):
        raise wrong(f"expected {column}, a number, got {shown(text)}", "wrong_type")
    value = float(text)
    if not least <= value <= most:
        raise wrong(f"expected {column} above 0, from {least:g} to {most:g}, got {shown(text)}", "out_of_range")
    return value


def shown(text: str) -> str:
    """A field of somebody's file, cut short."""
    return f'"{text}"' if len(text) <= MOST_SHOWN else f'"{text[:MOST_SHOWN]}..."'


def _check_header(cells: list[str], columns: tuple[str, ...], others: bool, wrong: Wrong) -> None:
    """Raise what is wrong with the first line, without showing more of a file than one short field."""
    missing = next((column for column in columns if column not in cells), None)
    if others:
        if missing is not None:
            message = f"expected a header with the columns {','.join(columns)}, separated by commas: no {missing}"
            raise wrong(message, "missing_field")
        twice = next((cell for place, cell in enumerate(cells) if cell and cell in cells[:place]), None)
        if twice is not None:
            raise wrong(f"two columns are called {shown(twice)}", "duplicate_id")
        return
    if sorted(cells) == sorted(columns):
        return
    expected = f"expected a header of the columns {','.join(columns)}, separated by commas, and no others"
    strange = next((cell for cell in cells if cell not in columns), None)
    if strange is not None:
        raise wrong(f"{expected}, got {shown(strange)}", "missing_field")
    raise wrong(f"{expected}: {f'no {missing}' if missing else f'{len(cells)} fields'}", "missing_field")


def _text(path: Path, where: str) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInputError(f"cannot read {path.name}: {reason}", code="missing_field", where=where) from None
    if len(data) > MAX_BYTES:
        raise BadInputError(f"{path.name} is larger than {MAX_BYTES // 2**20} MiB", code="too_large", where=where)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInputError(f"{path.name} is no UTF-8 text", code="wrong_type", where=where) from None


def _fault(path: Path, line: int, where: str) -> Wrong:
    def wrong(message: str, code: str) -> BadInputError:
        return BadInputError(f"{path.name} line {line}: {message}", code=code, where=where)

    return wrong
