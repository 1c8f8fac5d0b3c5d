"""Rows of measurements from CSV or JSON Lines; a fault is told with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar, get_args

from pydantic.fields import FieldInfo

from planner.beside import lines_of
from planner.csv_rows import Wrong, csv_rows, number, whole
from planner.errors import BadInputError
from planner.json_text import Json, parse_json
from planner.papers.bidirl.measurements import MAX_ROWS, AnyRow
from planner.validation import validate

R = TypeVar("R", bound=AnyRow)

_TEXT = frozenset({"layout", "stage", "role"})
_LEAST, _MOST = 5e-324, 1e300
"""Of a number in a file; the fields know better."""


def read_rows(path: Path, row: type[R], where: str) -> list[R]:
    """All rows of a file, in the fields of ``row``. Columns and keys that it has beside them are passed over.

    Raises BadInputError with the line.
    """
    read = _of_json_lines if path.name.lower().endswith(".jsonl") else _of_csv
    found = []
    for name, document in read(path, row, where):
        try:
            found.append(validate(row, document))
        except BadInputError as error:
            place = f" (at {error.where})" if error.where else ""
            raise BadInputError(f"{name}: {error.message}{place}", code=error.code, where=where) from None
        if len(found) > MAX_ROWS:
            raise BadInputError(f"{path.name} has more than {MAX_ROWS:,} rows", code="too_large", where=where)
    if not found:
        raise BadInputError(f"{path.name} holds no rows", code="missing_field", where=where)
    return found


def json_lines(path: Path, where: str) -> Iterator[tuple[str, dict[str, Json]]]:
    """The objects of a JSON Lines file, each with a name for messages. Raises BadInputError with the line."""
    for name, line in lines_of(path, where):
        try:
            found: Json = parse_json(line.decode("utf-8"), "the line")
        except UnicodeDecodeError:
            raise BadInputError(f"{name}: no UTF-8 text", code="wrong_type", where=where) from None
        except BadInputError as error:
            raise BadInputError(f"{name}: {error.message}", code=error.code, where=where) from None
        except RecursionError:
            raise BadInputError(f"{name}: nested too deeply", code="too_large", where=where) from None
        if not isinstance(found, dict):
            raise BadInputError(f"{name}: expected a JSON object", code="wrong_type", where=where)
        yield name, found


def _of_json_lines(path: Path, row: type[R], where: str) -> Iterator[tuple[str, dict[str, Json]]]:
    for name, found in json_lines(path, where):
        yield name, {key: value for key, value in found.items() if key in row.model_fields and value is not None}


def _of_csv(path: Path, row: type[R], where: str) -> Iterator[tuple[str, dict[str, Json]]]:
    needed = tuple(name for name, field in row.model_fields.items() if field.is_required())
    reads = {name: _reader(name, field) for name, field in row.model_fields.items()}
    for line, cells, wrong in csv_rows(path, needed, where, others=True):
        given = {name: read(cells[name], name, wrong) for name, read in reads.items() if cells.get(name)}
        yield f"{path.name} line {line}", given


def _reader(name: str, field: FieldInfo) -> Callable[[str, str, Wrong], Json]:
    if name in _TEXT:
        return lambda text, _name, _wrong: text
    if int in (field.annotation, *get_args(field.annotation)):
        return partial(whole, least=0)
    return partial(number, least=_LEAST, most=_MOST)
