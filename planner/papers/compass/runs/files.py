"""Measured runs from CSV files of others: a header, then one run a line; a fault is told with its line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from planner.errors import BadInputError
from planner.papers.compass.problem import LEAST_S

MAX_BYTES = 2**24
MAX_SECONDS = 1e15
MAX_SIZE = 1e24
MOST_SHOWN = 20
"""Characters of a field that a message repeats."""

_WHOLE = re.compile(r"[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")

Wrong = Callable[[str, str], BadInputError]
"""A fault of a line, from message and code."""


def read_runs(path: Path, where: str) -> list[tuple[int, int, float]]:
    """Runs of the whole operator: line, degree, seconds. Columns ``degree,time_s``. Raises BadInputError."""
    found = []
    for line, row, wrong in _rows(path, ("degree", "time_s"), where):
        degree = row["degree"]
        if not _WHOLE.fullmatch(degree) or int(degree) < 1:
            raise wrong(f"expected a degree, a whole number from 1 on, got {_shown(degree)}", "wrong_type")
        found.append((line, int(degree), _number(row["time_s"], "time_s", MAX_SECONDS, wrong)))
    return found


def read_stages(path: Path, where: str) -> dict[str, list[tuple[float, float]]]:
    """Runs of each stage alone: size and seconds, by stage. Columns ``stage,size,time_s``. Raises BadInputError.

    Each stage needs runs of two sizes at least.
    """
    found: dict[str, list[tuple[float, float]]] = {"comm": [], "gemm": []}
    for _, row, wrong in _rows(path, ("stage", "size", "time_s"), where):
        if row["stage"] not in found:
            raise wrong(f"expected stage comm or gemm, got {_shown(row['stage'])}", "out_of_range")
        size = _number(row["size"], "size", MAX_SIZE, wrong)
        found[row["stage"]].append((size, _number(row["time_s"], "time_s", MAX_SECONDS, wrong)))
    for stage, runs in found.items():
        sizes = len({size for size, _ in runs})
        if sizes < 2:
            message = f"{path.name}: expected runs of stage {stage} at two sizes at least, got {sizes}"
            raise BadInputError(message, code="out_of_range", where=where)
    return found


def _rows(path: Path, columns: tuple[str, ...], where: str) -> Iterator[tuple[int, dict[str, str], Wrong]]:
    """Every run with its line; the header may list the columns in any order."""
    reader = csv.reader(io.StringIO(_text(path, where), newline=""), strict=True)
    header: list[str] | None = None
    runs = 0
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
            if sorted(cells) != sorted(columns):
                raise wrong(_other_header(cells, columns), "missing_field")
            header = cells
            continue
        if len(cells) != len(header):
            raise wrong(f"expected {len(header)} fields, got {len(cells)}", "wrong_type")
        runs += 1
        yield reader.line_num, dict(zip(header, cells, strict=True)), wrong
    if not runs:
        raise BadInputError(f"{path.name} holds no runs", code="missing_field", where=where)


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


def _number(text: str, column: str, most: float, wrong: Wrong) -> float:
    if not _DECIMAL.fullmatch(text):
        raise wrong(f"expected {column}, a number, got {_shown(text)}", "wrong_type")
    value = float(text)
    if not LEAST_S <= value <= most:
        raise wrong(f"expected {column} above 0, from {LEAST_S:g} to {most:g}, got {_shown(text)}", "out_of_range")
    return value


def _fault(path: Path, line: int, where: str) -> Wrong:
    def wrong(message: str, code: str) -> BadInputError:
        return BadInputError(f"{path.name} line {line}: {message}", code=code, where=where)

    return wrong


def _other_header(cells: list[str], columns: tuple[str, ...]) -> str:
    """What is wrong with the first line, without showing more of a file than one short field."""
    expected = f"expected a header of the columns {','.join(columns)}, separated by commas, and no others"
    strange = next((cell for cell in cells if cell not in columns), None)
    if strange is not None:
        return f"{expected}, got {_shown(strange)}"
    missing = next((column for column in columns if column not in cells), None)
    return f"{expected}: {f'no {missing}' if missing else f'{len(cells)} fields'}"


def _shown(text: str) -> str:
    """A field of somebody's file, cut short: it may be a file of another kind."""
    return f'"{text}"' if len(text) <= MOST_SHOWN else f'"{text[:MOST_SHOWN]}..."'
