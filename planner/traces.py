"""Traces of requests, each with its time and its tokens in and out, as public data sets write them.

    TIMESTAMP,ContextTokens,GeneratedTokens                          Azure: date and time, or seconds
    Timestamp,...,Request tokens,Response tokens,...                 BurstGPT: seconds
    {"timestamp": 3000, "input_length": 6758, "output_length": 500}  Mooncake: JSON Lines, whole milliseconds

They are told apart by these names; other columns and keys are passed over. A cell may be quoted, on one line.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from planner.beside import lines_of
from planner.errors import BadInputError
from planner.json_text import parse_json
from planner.validation import shown_value

MAX_REQUESTS = 10_000_000
MAX_TOKENS = 2**31
LATEST_S = 1e11
"""Seconds above this are no date, and no time since a trace began either: they count something smaller."""
EPOCH_MS = 1_000_000_000, 100_000_000_000
"""Between these lie times since 1970 in seconds, and the milliseconds of no trace from its beginning."""

_CSV_NAMES = (
    ("timestamp", "contexttokens", "generatedtokens"),
    ("timestamp", "request tokens", "response tokens"),
)
_JSON_NAMES = ("timestamp", "input_length", "output_length")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,15})?", re.ASCII)

Row = tuple[float, int, int]
"""Seconds, tokens in, tokens out."""


@dataclass(frozen=True, eq=False)
class Requests:
    """Requests by ascending time [N]: seconds after the first one, tokens that came with it, tokens it was answered."""

    arrival_s: npt.NDArray[np.float64]
    input_tokens: npt.NDArray[np.int64]
    output_tokens: npt.NDArray[np.int64]


def read_requests(path: Path, where: str) -> Requests:
    """All requests of a file. Raises BadInputError naming the line: unknown fields, times or tokens that are none."""
    times, taken, given = array("d"), array("q"), array("q")
    lines = _lines(path, where)
    first = next(lines, None)
    if first is None:
        raise BadInputError(f"{path.name} holds no request", code="out_of_range", where=where)
    in_json = first[1].lstrip().startswith("{")
    rows = _objects(first, lines, where) if in_json else _records(first, lines, where)
    for seconds, tokens_in, tokens_out in rows:
        times.append(seconds)
        taken.append(tokens_in)
        given.append(tokens_out)
        if len(times) > MAX_REQUESTS:
            raise BadInputError(f"{path.name}: more than {MAX_REQUESTS:,} requests", code="too_large", where=where)
    if not times:
        raise BadInputError(f"{path.name} holds no request", code="out_of_range", where=where)
    arrival = np.array(times, np.float64)
    if in_json:
        _refuse_seconds(arrival.min(), path.name, where)
    order = np.argsort(arrival, kind="stable")
    arrival = arrival[order]
    return Requests(arrival - arrival[0], np.array(taken, np.int64)[order], np.array(given, np.int64)[order])


def _refuse_seconds(first_s: float, name: str, where: str) -> None:
    """Refuse a trace whose first timestamp in milliseconds is a date in seconds."""
    low, high = EPOCH_MS
    if low <= (first_ms := round(first_s * 1000)) < high:
        message = (
            f'{name}: expected "timestamp" in milliseconds, got {first_ms:,} at the least, which is a date in seconds: '
            "multiply by 1,000, or count from the first request"
        )
        raise BadInputError(message, code="out_of_range", where=where)


def _lines(path: Path, where: str) -> Iterator[tuple[str, str]]:
    """Names and texts of the lines that are not blank."""
    for name, line in lines_of(path, where):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise _wrong(name, "no UTF-8 text", "wrong_type", where) from None
        if not text.isspace():
            yield name, text


def _records(header: tuple[str, str], lines: Iterator[tuple[str, str]], where: str) -> Iterator[Row]:
    name, text = header
    columns = [column.lower() for column in _cells(text, name, where)]
    wanted = next((names for names in _CSV_NAMES if set(names) <= set(columns)), None)
    if wanted is None:
        message = (
            "expected a header with TIMESTAMP, ContextTokens, GeneratedTokens (Azure) or Timestamp, Request tokens, "
            "Response tokens (BurstGPT), or JSON Lines with timestamp, input_length, output_length (Mooncake)"
        )
        raise _wrong(name, message, "missing_field", where)
    twice = next((column for column in wanted if columns.count(column) > 1), None)
    if twice is not None:
        raise _wrong(name, f"two columns are called {twice}", "duplicate_id", where)
    time, taken, given = (columns.index(column) for column in wanted)
    seconds: Callable[[str], float | None] | None = None
    for name, text in lines:
        cells = _cells(text, name, where)
        if len(cells) != len(columns):
            message = f"expected {len(columns)} columns, as in the header, got {len(cells)}"
            raise _wrong(name, message, "out_of_range", where)
        seconds = seconds or (_date_seconds if _DATE.fullmatch(cells[time]) else _number_seconds)
        at = seconds(cells[time])
        if at is None:
            what = "a date and time" if seconds is _date_seconds else "seconds, or a date and time"
            raise _wrong(name, f"expected {what} from 0 on, got {shown_value(cells[time])}", "out_of_range", where)
        if at >= LATEST_S:
            message = f"expected seconds, got {shown_value(cells[time])}, as many as milliseconds since 1970 or more"
            raise _wrong(name, f"{message}: divide by 1,000", "out_of_range", where)
        yield at, _whole(cells[taken], wanted[1], name, where), _whole(cells[given], wanted[2], name, where)


def _cells(text: str, name: str, where: str) -> list[str]:
    if '"' not in text:
        return [cell.strip() for cell in text.split(",")]
    try:
        return [cell.strip() for cell in next(csv.reader([text.strip()], skipinitialspace=True, strict=True))]
    except csv.Error as error:
        raise _wrong(name, f"quotes that no CSV line has: {error}", "wrong_type", where) from None


def _objects(first: tuple[str, str], lines: Iterator[tuple[str, str]], where: str) -> Iterator[Row]:
    for name, text in chain([first], lines):
        try:
            document = parse_json(text, name)
        except RecursionError:
            raise _wrong(name, "nested too deeply", "not_json", where) from None
        except BadInputError as error:
            raise BadInputError(error.message, code=error.code, where=where) from None
        if not isinstance(document, dict):
            raise _wrong(name, "expected an object", "wrong_type", where)
        missing = next((key for key in _JSON_NAMES if key not in document), None)
        if missing is not None:
            raise _wrong(name, f'missing field "{missing}"', "missing_field", where)
        time, taken, given = (document[key] for key in _JSON_NAMES)
        if type(time) is not int or not 0 <= time < LATEST_S * 1000:
            message = f'expected "timestamp" in whole milliseconds from 0 to 1e14, got {shown_value(time)}'
            raise _wrong(name, message, "out_of_range", where)
        yield time / 1000, _count(taken, _JSON_NAMES[1], name, where), _count(given, _JSON_NAMES[2], name, where)


def _date_seconds(text: str) -> float | None:
    """Seconds since 1970 of a date and time; without an offset it is UTC. Digits beyond microseconds count."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{'' if offset in (None, 'Z') else offset}")
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return moment.timestamp() + float(fraction or 0)


def _number_seconds(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _whole(text: str, column: str, name: str, where: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < MAX_TOKENS:
        return int(text)
    message = f"expected a whole number below 2^31 in column {column}, got {shown_value(text)}"
    raise _wrong(name, message, "out_of_range", where)


def _count(value: object, key: str, name: str, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_TOKENS:
        return value
    raise _wrong(name, f'expected "{key}", a whole number below 2^31, got {shown_value(value)}', "out_of_range", where)


def _wrong(name: str, reason: str, code: str, where: str) -> BadInputError:
    return BadInputError(f"{name}: {reason}", code=code, where=where)
