"""Measured runs from files beside a problem: what they become, that they override the model, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from compass_cases import G1, G3, MILLI, Document, solved

from planner.beside import Beside
from planner.envelope import dump_model
from planner.errors import BadInputError
from planner.papers.compass.problem import CompassProblem, Operator
from planner.papers.compass.runs.attach import attach
from planner.validation import validate

RUNS = "degree,time_s\n1,0.0101\n2,0.0095\n4,0.0087\n8,0.0089\n16,0.0092\n8,0.0085\n8,0.0300\n"
"""Sequential, then four degrees, one of them run three times."""


def attached(folder: Path, text: str | bytes, field: str = "runs", **changes: Any) -> Operator:
    """G1 with a file, read."""
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "a.csv").write_bytes(data)
    named = {"path": "a.csv"} if field == "runs" else {"path": "a.csv", "comm_bytes": 2.0**26, "gemm_rows": 4096.0}
    document = {name: value for name, value in (G1 | {field: named} | changes).items() if value is not None}
    made = attach(validate(CompassProblem, {"operators": [document]}), Beside(str(folder)))
    assert made.files == {"a.csv": hashlib.sha256(data).hexdigest()}
    again = validate(CompassProblem, json.loads(json.dumps(dump_model(made.problem))))
    assert attach(again, Beside("nowhere")).problem == made.problem, "what was read stands in the problem"
    return made.problem.operators[0]


def test_runs_become_a_table_of_medians_and_the_sequential_time(tmp_path: Path) -> None:
    made = attached(tmp_path, RUNS)
    assert made.runs is None
    assert made.sequential_time_s == 0.0101
    assert made.inter_decom_table is not None
    assert [(p.degree, p.time_s) for p in made.inter_decom_table] == [
        (2, 0.0095),
        (4, 0.0087),
        (8, 0.0089),
        (16, 0.0092),
    ]


def test_measured_runs_override_the_model(tmp_path: Path) -> None:
    """By its stages G1 takes 8 chunks in 8.66 ms; its runs were quickest in 4."""
    made = attached(tmp_path, RUNS)
    choice = solved(CompassProblem(operators=(made,))).choices[0]
    assert (choice.degree, choice.time_s, choice.bound) == (4, 0.0087, "table")


def test_a_stated_sequential_time_is_kept(tmp_path: Path) -> None:
    assert attached(tmp_path, RUNS, sequential_time_s=0.5).sequential_time_s == 0.5


def test_the_fit_says_what_it_would_have_picked_and_what_that_costs(tmp_path: Path) -> None:
    """T(d) = 50 us d + 8.01 ms + 2 ms / d but for a dip at 16: the curve picks 8 all the same, 8.66 ms for 8.5."""
    runs = {d: 50e-6 * d + 8.01 * MILLI + 2 * MILLI / d for d in (2, 4, 8, 16, 32, 64)} | {16: 8.5 * MILLI}
    made = attached(tmp_path, "degree,time_s\n" + "".join(f"{d},{t!r}\n" for d, t in runs.items()))
    assert made.fit is not None
    assert (made.fit.table_degree, made.fit.fit_degree) == (16, 8)
    assert made.fit.regret == pytest.approx(8.66 / 8.5 - 1)
    assert not made.fit.reliable


def test_exact_runs_are_believed_and_show_their_contention(tmp_path: Path) -> None:
    """G1 is bound by its collective at all of these: T(d) = t_c + t_g + (d - 1) 1.2 t_c."""
    runs = []
    for d in (2, 4, 8, 16, 32, 64):
        t_c, t_g = 50e-6 + 8e-3 / d, 10e-6 + 2e-3 / d
        runs.append(f"{t_c + t_g + (d - 1) * 1.2 * t_c!r}, {d}")
    made = attached(tmp_path, "\ufefftime_s, degree\r\n" + "\r\n\r\n".join(runs) + "\r\n")
    assert made.fit is not None
    assert made.fit.reliable
    assert made.contention.comm == pytest.approx(1.2)
    assert made.contention.gemm == 1.0


def test_two_degrees_make_a_table_and_no_curve(tmp_path: Path) -> None:
    made = attached(tmp_path, "degree,time_s\n2,0.05\n4,0.025\n")
    assert made.fit is not None
    assert (made.fit.curves, made.fit.table_degree, made.fit.reliable) == ((), 4, False)


SWEEP = "stage,size,time_s\n" + "".join(
    f"comm,{2**k},{20e-6 + 2**k / 50e9!r}\ngemm,{2 ** (k - 12)},{12e-6 + 2 ** (k - 12) * 1e-6!r}\n"
    for k in (14, 18, 22, 26)
)


def test_sweeps_become_stages(tmp_path: Path) -> None:
    made = attached(tmp_path, SWEEP, "stages", comm=None, gemm=None)
    assert made.comm is not None
    assert made.gemm is not None
    assert (made.comm.startup_s, made.comm.payload_s) == pytest.approx((20e-6, 2**26 / 50e9), rel=1e-6)
    assert (made.gemm.startup_s, made.gemm.payload_s) == pytest.approx((12e-6, 4096e-6), rel=1e-6)
    assert made.fit is not None
    assert made.fit.reliable
    assert made.fit.comm_relative_error == pytest.approx(0, abs=1e-9)


def test_sweeps_and_runs_of_one_operator_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("degree,time_s\n2,0.004\n4,0.003\n8,0.0035\n16,0.005\n")
    (tmp_path / "sweep.csv").write_text(SWEEP)
    document: Document = {name: value for name, value in G1.items() if name not in ("comm", "gemm")} | {
        "runs": {"path": "runs.csv"},
        "stages": {"path": "sweep.csv", "comm_bytes": 2.0**26, "gemm_rows": 4096.0},
    }
    made = attach(validate(CompassProblem, {"operators": [document]}), Beside(str(tmp_path)))
    assert sorted(made.files) == ["runs.csv", "sweep.csv"]
    fit = made.problem.operators[0].fit
    assert fit is not None
    assert (fit.comm_relative_error is not None, fit.table_degree) == (True, 4)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("", "missing_field", "holds no runs"),
        ("degree,time_s\n", "missing_field", "holds no runs"),
        ("2,0.5\n", "missing_field", "line 1: expected a header of the columns degree,time_s"),
        ("degree,time\n2,0.5\n", "missing_field", 'and no others, got "time"'),
        ("degree;time_s\n2;0.5\n", "missing_field", 'separated by commas, and no others, got "degree;time_s"'),
        ("degree\ttime_s\n2\t0.5\n", "missing_field", "separated by commas"),
        ("# runs of fc1\ndegree,time_s\n2,0.5\n", "missing_field", 'and no others, got "# runs of fc1"'),
        ("root:x:0:0:root:/root:/bin/bash\n", "missing_field", 'got "root:x:0:0:root:/roo..."'),
        ("degree\n2\n", "missing_field", "and no others: no time_s"),
        ("degree,degree\n2,0.5\n", "missing_field", "line 1"),
        ("degree,time_s,note\n2,0.5,x\n", "missing_field", 'and no others, got "note"'),
        ("degree,time_s,degree\n2,0.5,2\n", "missing_field", "and no others: 3 fields"),
        ("degree,time_s\n2,0.5\n4\n", "wrong_type", "line 3: expected 2 fields, got 1"),
        ("degree,time_s\n2,0.5,7\n", "wrong_type", "line 2: expected 2 fields, got 3"),
        ("degree,time_s\n2.0,0.5\n", "wrong_type", "line 2: expected a degree"),
        ("degree,time_s\n-2,0.5\n", "wrong_type", "line 2: expected a degree"),
        ("degree,time_s\n0,0.5\n", "wrong_type", "line 2: expected a degree"),
        ("degree,time_s\n٢,0.5\n", "wrong_type", "line 2: expected a degree"),
        ("degree,time_s\n1_6,0.5\n", "wrong_type", "line 2: expected a degree"),
        ("degree,time_s\n" + "9" * 400 + ",0.5\n", "wrong_type", "line 2: expected a degree"),
        ("degree,time_s\n3,0.5\n", "illegal_degree", "line 2: expected 1 or a degree from 2"),
        ("degree,time_s\n128,0.5\n", "illegal_degree", "= 64, got 128"),
        ("degree,time_s\n2,0\n", "out_of_range", "line 2: expected time_s above 0"),
        ("degree,time_s\n2,-1\n", "out_of_range", "line 2: expected time_s above 0"),
        ("degree,time_s\n2,1e999\n", "out_of_range", "line 2: expected time_s above 0"),
        ("degree,time_s\n2,1e-999\n", "out_of_range", "line 2: expected time_s above 0"),
        ("degree,time_s\n2,nan\n", "wrong_type", "line 2: expected time_s, a number"),
        ("degree,time_s\n2,inf\n", "wrong_type", "line 2: expected time_s, a number"),
        ("degree,time_s\n2,1_000\n", "wrong_type", "line 2: expected time_s, a number"),
        ("degree,time_s\n2,\n", "wrong_type", "line 2: expected time_s, a number"),
        ("degree,time_s\n2,__import__('os')\n", "wrong_type", "line 2: expected time_s, a number"),
        ('degree,time_s\n2,"0.5\n4,0.5\n', "wrong_type", "no CSV"),
        ('degree,time_s\n2,"0.5"x\n', "wrong_type", "line 2: no CSV"),
        ("degree,time_s\n2,\0\n", "wrong_type", "line 2"),
        (b"degree,time_s\n2,\xff\n", "wrong_type", "no UTF-8 text"),
        (b"\x80\x04K\x01.", "wrong_type", "no UTF-8 text"),
        ("degree,time_s\n2," + "1" * 200_000 + "\n", "wrong_type", "line 2"),
        (b"degree,time_s\n" + b"2,0.5\n" * 2_800_000, "too_large", "larger than 16 MiB"),
    ],
    ids=range(38),
)
def test_a_file_of_runs_that_is_not_one_is_refused_with_its_line(
    tmp_path: Path, text: str | bytes, code: str, said: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        attached(tmp_path, text)
    assert (caught.value.code, caught.value.where) == (code, "operators.x.runs.path")
    assert said in caught.value.message
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stage,size,time_s\nnvlink,1,1\n", 'line 2: expected stage comm or gemm, got "nvlink"'),
        ("stage,size,time_s\ncomm,0,1\n", "line 2: expected size above 0"),
        ("stage,size,time_s\ncomm,1,1\ncomm,2,2\n", "stage gemm at two sizes at least, got 0"),
        ("stage,size,time_s\ncomm,1,1\ncomm,1,2\ngemm,1,1\ngemm,2,2\n", "stage comm at two sizes at least, got 1"),
    ],
)
def test_a_file_of_sweeps_that_is_not_one_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInputError) as caught:
        attached(tmp_path, text, "stages", comm=None, gemm=None)
    assert caught.value.where == "operators.x.stages.path"
    assert said in caught.value.message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    given = validate(CompassProblem, {"operators": [G1 | {"runs": {"path": "gone.csv"}}]})
    with pytest.raises(BadInputError, match=r"gone\.csv") as caught:
        attach(given, Beside(str(tmp_path)))
    assert (caught.value.code, caught.value.where) == ("missing_field", "operators.x.runs.path")


def test_runs_that_leave_the_sequential_time_unknown_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="sequential_time_s") as caught:
        attached(tmp_path, "degree,time_s\n2,0.5\n", comm=None, gemm=None)
    assert caught.value.where == "operators.x.runs.path"
    assert "a.csv holds no run of degree 1" in caught.value.message


# --- units --------------------------------------------------------------------------------------------------------

SCALES = {"milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
QUICK = {1: 0.0101, 2: 0.0095, 4: 0.0087, 8: 0.0089}
"""Seconds of G1 by degree."""


def csv_of(times: dict[int, float], factor: float) -> str:
    return "degree,time_s\n" + "".join(f"{d},{t * factor!r}\n" for d, t in times.items())


@pytest.mark.parametrize("unit", SCALES)
@pytest.mark.parametrize("degrees", [(1, 2, 4, 8), (2, 4), (1,)])
def test_runs_in_another_unit_than_their_stages_are_refused(
    tmp_path: Path, unit: str, degrees: tuple[int, ...]
) -> None:
    """Whether there is a sequential run to go by or not, and whatever would be fitted."""
    with pytest.raises(BadInputError) as caught:
        attached(tmp_path, csv_of({d: QUICK[d] for d in degrees}, SCALES[unit]))
    assert (caught.value.code, caught.value.where) == ("out_of_range", "operators.x.runs.path")
    assert f"is time_s in {unit} instead of seconds?" in caught.value.message
    assert "stated by comm and gemm" in caught.value.message


@pytest.mark.parametrize("unit", SCALES)
def test_stages_in_another_unit_than_the_runs_are_refused(tmp_path: Path, unit: str) -> None:
    stages = {name: {field: value * SCALES[unit] for field, value in G1[name].items()} for name in ("comm", "gemm")}
    with pytest.raises(BadInputError, match=f"are comm and gemm in {unit} instead of seconds"):
        attached(tmp_path, RUNS, **stages)


def test_runs_in_another_unit_than_a_stated_sequential_time_are_refused(tmp_path: Path) -> None:
    alone: Document = {"comm": None, "gemm": None, "sequential_time_s": 10.1}
    with pytest.raises(BadInputError, match="is sequential_time_s in milliseconds instead of seconds"):
        attached(tmp_path, "degree,time_s\n2,0.0095\n", **alone)
    with pytest.raises(BadInputError, match="1,881 times what is stated by sequential_time_s"):
        attached(tmp_path, "degree,time_s\n2,19000\n", **alone)


def test_one_degree_that_is_far_off_is_refused_by_the_slow_down_that_it_shows(tmp_path: Path) -> None:
    """The page's G3, bound by its collective from 8 chunks on: only the run in 16 tells of its slow-down."""
    runs = {2: 4.05e-3, 4: 3.4e-3, 16: 3.4e3}
    with pytest.raises(BadInputError, match=r"the collective is 1,\d{3},\d{3} times slower than alone") as caught:
        attached(tmp_path, csv_of(runs, 1.0), **{name: G3[name] for name in ("comm", "gemm", "split_extent")})
    assert "microseconds" in caught.value.message


def test_runs_within_twenty_times_their_stages_are_believed(tmp_path: Path) -> None:
    """G1 in two chunks: t_c + t_g + 15 t_c, t_c being 4.05 ms and t_g 1.01 ms."""
    made = attached(tmp_path, f"degree,time_s\n2,{1.01e-3 + 16 * 4.05e-3!r}\n")
    assert made.contention.comm == pytest.approx(15.0)


def test_a_time_below_any_clock_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="expected time_s above 0, from 1e-30"):
        attached(tmp_path, "degree,time_s\n2,1e-320\n")
