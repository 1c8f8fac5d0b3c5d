"""Measured runs where a profile priced the operator too: which of both counts, and what is said of what is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compass_cases import G1, Document, problem, solved
from compass_derived import derived, document, operators, refused, table

from planner.beside import Beside
from planner.envelope import dump_model
from planner.fields import set_field
from planner.paper import DeriveOptions
from planner.papers.compass.cautions import ORDER, warnings
from planner.papers.compass.problem import CompassProblem, Operator
from planner.papers.compass.runs.attach import attach
from planner.pose import pose
from planner.validation import validate

CSV = "degree,time_s\n1,0.00172\n2,0.0015\n4,0.00139\n8,0.00141\n16,0.00155\n"
"""Of fc1_fprop, which is priced at 1.68 ms in sequence."""


def with_runs(folder: Path, text: str = CSV, rules: str = "none", **changes: Any) -> CompassProblem:
    """The derived problem whose fc1_fprop was measured."""
    (folder / "f.csv").write_text(text)
    given = document(rules, runs={"fc1_fprop": {"path": "f.csv"}}, **changes)
    return derived(given, base_folder=str(folder)).problem


def operator_of(given: CompassProblem, name: str = "fc1_fprop") -> Operator:
    return next(operator for operator in given.operators if operator.id == name)


def said(given: CompassProblem) -> dict[str, str]:
    return {warned.code: warned.message for warned in warnings(given, solved(given))}


# --- in a derived problem -----------------------------------------------------------------------------------------


def test_runs_take_the_place_of_what_the_profile_says_of_their_operator_alone(tmp_path: Path) -> None:
    priced = operators(document())
    made = with_runs(tmp_path)
    fc1 = operator_of(made)
    assert table(fc1) == {2: 0.0015, 4: 0.00139, 8: 0.00141, 16: 0.00155}
    assert fc1.sequential_time_s == 0.00172
    assert (fc1.sequential_sources, fc1.table_sources) == (fc1.table_sources, fc1.sequential_sources)
    assert fc1.table_sources is not None
    assert fc1.table_sources.measured == 1
    assert {operator.id: operator for operator in made.operators if operator.id != "fc1_fprop"} == {
        name: operator for name, operator in priced.items() if name != "fc1_fprop"
    }
    assert "sequential_not_measured" not in said(made)


def test_a_table_that_was_measured_is_not_called_composed(tmp_path: Path) -> None:
    assert said(derived(document()).problem)["composed_table"].startswith("times by degree")
    text = said(with_runs(tmp_path))["composed_table"]
    assert text.startswith("fc1_dgrad, fc2_dgrad, fc2_fprop and 4 more: times by degree")
    every = {name: {"path": "f.csv"} for name in operators(document(passes="forward"))}
    # qkv, proj and fc2 take a third to a half of fc1: within the twenty times that are believed
    whole = derived(document(passes="forward", runs=every), base_folder=str(tmp_path)).problem
    assert not {"composed_table", "contention_unmeasured"} & said(whole).keys()


def test_chunks_that_were_measured_beside_a_sequence_that_was_not_are_warned_of(tmp_path: Path) -> None:
    made = with_runs(tmp_path, CSV.replace("1,0.00172\n", ""))
    fc1 = operator_of(made)
    assert fc1.sequential_time_s == operators(document())["fc1_fprop"].sequential_time_s
    assert said(made)["sequential_not_measured"].startswith("fc1_fprop: chunks were measured")
    alone = said(with_runs(tmp_path, "degree,time_s\n1,0.00172\n"))
    assert alone["chunks_not_measured"].startswith("fc1_fprop: the time in sequence was measured")


def test_sweeps_are_taken_at_the_operators_own_sizes(tmp_path: Path) -> None:
    # 8,192 rows and 128 MiB: a collective of 20 us and 50 GB/s, a GEMM of 10 us and 0.1 us a row
    rows = [
        f"comm,{size},{20e-6 + size / 50e9!r}\ngemm,{size >> 14},{10e-6 + (size >> 14) * 1e-7!r}\n"
        for size in (1 << 20, 1 << 27)
    ]
    (tmp_path / "s.csv").write_text("stage,size,time_s\n" + "".join(rows))
    given = document(stages={"fc1_fprop": {"path": "s.csv"}})
    fc1 = operators(given, base_folder=str(tmp_path))["fc1_fprop"]
    assert fc1.comm is not None
    assert fc1.gemm is not None
    assert (fc1.inter_decom_table, fc1.sequential_time_s) == (None, None)
    assert fc1.comm.payload_s == pytest.approx(8192 * 8192 * 2 / 50e9, rel=1e-6)
    assert fc1.gemm.payload_s == pytest.approx(8192e-7, rel=1e-6)


@pytest.mark.parametrize(("scale", "likely"), [(1e3, "milliseconds"), (1e6, "microseconds"), (1e-3, "are sizes in")])
def test_sweeps_in_another_unit_are_held_against_the_profiles_own_price(
    tmp_path: Path, scale: float, likely: str
) -> None:
    # 0.3 ms of collective and 1.4 ms of GEMM in seconds, 1.68 ms in sequence by the profile
    rows = "".join(
        f"comm,{share * 134217728},{share * 0.3e-3 * scale!r}\ngemm,{share * 8192},{share * 1.4e-3 * scale!r}\n"
        for share in (0.25, 1)
    )
    (tmp_path / "s.csv").write_text("stage,size,time_s\n" + rows)
    # runs in the same wrong unit agree with the sweeps, and hide nothing
    (tmp_path / "f.csv").write_text(f"degree,time_s\n1,{1.72e-3 * scale!r}\n4,{1.39e-3 * scale!r}\n")
    named: dict[str, Any] = {"stages": {"fc1_fprop": {"path": "s.csv"}}}
    for changes in (named, named | {"runs": {"fc1_fprop": {"path": "f.csv"}}}):
        error = refused(document(**changes), base_folder=str(tmp_path))
        assert (error.code, error.where) == ("out_of_range", "derive.stages.fc1_fprop.path")
        assert likely in error.message


def test_sweeps_of_a_machine_ten_times_slower_are_believed(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(
        "stage,size,time_s\ncomm,33554432,0.75e-3\ncomm,134217728,3e-3\ngemm,2048,3.5e-3\ngemm,8192,14e-3\n"
    )
    fc1 = operators(document(stages={"fc1_fprop": {"path": "s.csv"}}), base_folder=str(tmp_path))["fc1_fprop"]
    assert fc1.gemm is not None
    assert fc1.gemm.payload_s == pytest.approx(14e-3, rel=1e-6)


def test_files_of_runs_are_named_by_digest_and_found_beside_the_problem(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "f.csv").write_text(CSV)
    given = document(runs={"fc1_fprop": {"path": "mine/f.csv"}})
    made = derived(given, base_folder=str(tmp_path))
    assert list(made.arrays) == ["f.csv"]
    assert made.derive["runs"] == {"fc1_fprop": {"path": "f.csv"}}
    assert made.derive["resolved"]["operators"]["fc1_fprop"]["decided_by"] == "runs"
    assert "runs" not in derived(document()).derive
    posed = pose(given, DeriveOptions(base_folder=str(tmp_path)))
    assert list(posed.inputs.arrays) == ["f.csv"]


def test_an_operator_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    error = refused(document(passes="forward", runs={"fc1": {"path": "f.csv"}}))
    assert (error.code, error.where) == ("unknown_field", "derive.runs.fc1")
    assert "there are fc1_fprop, fc2_fprop, proj_fprop, qkv_fprop" in error.message
    error = refused(document(runs={"fc1_fprop": {"path": "gone.csv"}}), base_folder=str(tmp_path))
    assert (error.code, error.where) == ("missing_field", "derive.runs.fc1_fprop.path")


# --- in an explicit problem that was expanded ---------------------------------------------------------------------


def expanded(folder: Path, text: str, **changes: Any) -> CompassProblem:
    """The explicit problem with fc1_fprop's table deleted and runs in its place."""
    (folder / "f.csv").write_text(text)
    explicit: Document = json.loads(json.dumps(dump_model(derived(document()).problem)))
    place = next(each for each in explicit["operators"] if each["id"] == "fc1_fprop")
    place |= {"inter_decom_table": None, "runs": {"path": "f.csv"}} | changes
    return attach(validate(CompassProblem, explicit), Beside(str(folder))).problem.sorted()


def test_a_run_of_degree_1_replaces_a_composed_time_and_not_a_stated_one(tmp_path: Path) -> None:
    assert operator_of(expanded(tmp_path, CSV)).sequential_time_s == 0.00172
    stated = operator_of(expanded(tmp_path, CSV, sequential_time_s=0.0017, sequential_sources={"stated": 1.0}))
    assert stated.sequential_time_s == 0.0017
    assert operator_of(expanded(tmp_path, CSV, sequential_sources=None)).sequential_time_s != 0.00172
    assert "sequential_not_measured" in said(expanded(tmp_path, CSV.replace("1,0.00172\n", "")))


# --- the order of what is said ------------------------------------------------------------------------------------


def test_what_puts_prices_in_doubt_is_said_first() -> None:
    texts = {"fused_missing": "c", "composed_table": "b", "other_device": "a"}
    listed: Document = {
        **G1,
        "inter_decom_table": [{"degree": 8, "time_s": 0.0087}],
        "table_sources": {"modelled": 1.0},
    }
    given = problem(listed, cautions=texts)
    codes = [warned.code for warned in warnings(given, solved(given))]
    assert codes == sorted(codes, key=ORDER.index)
    assert (codes[0], codes[-1]) == ("other_device", "fused_missing")


def test_runs_that_take_minutes_a_call_are_asked_for_their_unit(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("degree,time_s\n1,1720\n4,1390\n")
    bare: Document = {name: value for name, value in G1.items() if name not in ("comm", "gemm")}
    given = attach(problem(bare | {"runs": {"path": "f.csv"}}), Beside(str(tmp_path))).problem
    assert "seconds?" in said(given)["times_too_long"]


def test_null_takes_a_table_away_on_the_command_line() -> None:
    explicit: Document = json.loads(json.dumps(dump_model(derived(document()).problem)))
    set_field(explicit, "operators.fc1_fprop.inter_decom_table", None)
    assert operator_of(validate(CompassProblem, explicit)).inter_decom_table is None
