"""Rows of measurements come from CSV or JSON Lines; what is wrong is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import BadInputError
from planner.papers.bidirl.logs.rows import read_rows
from planner.papers.bidirl.measurements import StepRow, TimerRow

HEADER = "role,replicas,work_factor,max_response_tokens,time_s\n"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_csv_and_json_lines_give_the_same_rows(tmp_path: Path) -> None:
    csv = written(tmp_path, "a.csv", HEADER + "rollout,4,1.5,2048,12.5\ntrain,2,,,8e1\n")
    lines = written(
        tmp_path,
        "a.jsonl",
        '{"role": "rollout", "replicas": 4, "work_factor": 1.5, "max_response_tokens": 2048, "time_s": 12.5}\n\n'
        '{"role": "train", "replicas": 2, "work_factor": 1.0, "max_response_tokens": null, "time_s": 80, "x": 1}\n',
    )
    found = read_rows(csv, StepRow, "log")
    assert found == read_rows(lines, StepRow, "log")
    assert found[1] == StepRow(role="train", replicas=2, time_s=80.0)


def test_columns_may_stand_in_any_order_beside_others(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "note,time_s,replicas\nfirst,3.0,2\n")
    assert read_rows(path, StepRow, "log") == [StepRow(replicas=2, time_s=3.0)]


def test_a_stage_that_no_chunk_lengthens_has_none(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "stage,chunks,time_s\noptimizer,0,0.8\n")
    assert read_rows(path, TimerRow, "log")[0].chunks == 0


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", HEADER + "rollout,4,1,2048,0\n", 'a.csv line 2: expected time_s above 0, .*, got "0"'),
        (
            "a.csv",
            HEADER + "rollout,4,1,2048,12\nrollout,4,1,2048,nan\n",
            'line 3: expected time_s, a number, got "nan"',
        ),
        ("a.csv", HEADER + "rollout,4,1,2048,1e400\n", "line 2: expected time_s"),
        (
            "a.csv",
            HEADER + "rollout,0,1,2048,12\n",
            r"line 2: expected .*greater than or equal to 1, got 0 \(at replicas\)",
        ),
        ("a.csv", HEADER + "rollout,4.5,1,2048,12\n", "line 2: expected replicas, a whole number"),
        ("a.csv", HEADER + "trainer,4,1,2048,12\n", r"line 2: .*got \"trainer\" \(at role\)"),
        ("a.csv", HEADER + "rollout,4,1\n", "line 2: expected 5 fields, got 3"),
        ("a.csv", "role,time_s\nrollout,1\n", "line 1: expected a header with the columns .*: no replicas"),
        ("a.csv", HEADER, "holds no runs"),
        ("a.csv", "", "holds no runs"),
        ("a.csv", HEADER + "rollout,,1,2048,12\n", r'line 2: missing field "replicas"'),
        ("a.jsonl", '{"replicas": 2, "time_s": 1.0}\n{"replicas": "2", "time_s": 1.0}\n', "a.jsonl line 2: expected"),
        ("a.jsonl", '{"replicas": 2}\n', 'line 1: missing field "time_s"'),
        ("a.jsonl", '{"replicas": 2, "time_s": NaN}\n', "line 1: "),
        ("a.jsonl", "[1]\n", "line 1: expected a JSON object"),
        ("a.jsonl", "{\n", "line 1: "),
        ("a.jsonl", "\n\n", "holds no rows"),
    ],
)
def test_a_fault_is_told_with_its_line(name: str, text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=said) as caught:
        read_rows(written(tmp_path, name, text), StepRow, "derive.rollout.time")
    assert caught.value.where == "derive.rollout.time"


def test_text_of_another_encoding_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"replicas": 2, "time_s": 1.0, "x": "\xff"}\n')
    with pytest.raises(BadInputError, match=r"a\.jsonl line 1: no UTF-8 text"):
        read_rows(path, StepRow, "log")
