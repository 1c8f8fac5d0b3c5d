"""Rows of CSV files: header, faults with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.csv_rows import MAX_BYTES, csv_rows, number, whole
from planner.errors import BadInputError


def _file(folder: Path, text: str | bytes) -> Path:
    path = folder / "runs.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def _fault(folder: Path, text: str | bytes, *, others: bool = False) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        list(csv_rows(_file(folder, text), ("a", "b"), "here", others=others))
    assert caught.value.where == "here"
    return caught.value


def test_rows_come_with_their_line_in_any_order_of_columns_and_without_blank_lines(tmp_path: Path) -> None:
    rows = list(csv_rows(_file(tmp_path, "\ufeffb,a\n1, 2\n\n3,4\n"), ("a", "b"), "here"))
    assert [(row.line, row.cells) for row in rows] == [(2, {"b": "1", "a": "2"}), (4, {"b": "3", "a": "4"})]


def test_other_columns_are_passed_over_where_they_may_be(tmp_path: Path) -> None:
    (row,) = csv_rows(_file(tmp_path, 'a,note,b\n1,"x, y",2\n'), ("a", "b"), "here", others=True)
    assert row.cells == {"a": "1", "note": "x, y", "b": "2"}
    assert 'got "note"' in _fault(tmp_path, "a,note,b\n1,x,2\n").message


@pytest.mark.parametrize(
    ("text", "others", "code", "said"),
    [
        ("a\n1\n", True, "missing_field", "no b"),
        ("a,b,a\n1,2,3\n", True, "duplicate_id", 'two columns are called "a"'),
        ("a,b\n1\n", True, "wrong_type", "runs.csv line 2: expected 2 fields, got 1"),
        ('a,b\n1,"2\n', True, "wrong_type", "no CSV"),
        ("a,b\n", False, "missing_field", "holds no runs"),
        ("", False, "missing_field", "holds no runs"),
        (b"\xff\xfe", False, "wrong_type", "no UTF-8"),
        (b"a,b\n" + b"1" * MAX_BYTES, False, "too_large", "larger than 16 MiB"),
    ],
)
def test_a_file_that_is_none_is_told(tmp_path: Path, text: str, others: bool, code: str, said: str) -> None:
    fault = _fault(tmp_path, text, others=others)
    assert (fault.code, said in fault.message) == (code, True), fault.message


def test_numbers_are_whole_or_decimal_and_within_bounds(tmp_path: Path) -> None:
    (row,) = csv_rows(_file(tmp_path, "a,b\n7,1.5e1\n"), ("a", "b"), "here")
    assert whole(row.cells["a"], "a", row.wrong) == 7
    assert number(row.cells["b"], "b", row.wrong, least=1, most=20) == 15
    for text in ("", "-1", "1.0", "1" * 19, "٣"):
        with pytest.raises(BadInputError, match="line 2: expected a, a whole number"):
            whole(text, "a", row.wrong)
    for text in ("", "nan", "inf", "1_0", "0x1"):
        with pytest.raises(BadInputError, match="line 2: expected b, a number"):
            number(text, "b", row.wrong, least=1, most=20)
    with pytest.raises(BadInputError, match="from 1 to 20"):
        number("21", "b", row.wrong, least=1, most=20)
