"""Measured runs in CSV files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner.errors import BadInputError
from planner.papers.layout.calibration.runs import Run, read_runs

HEADER = (
    "num_gpus,sequence_length,global_batch_size,micro_batch,tp,pp,step_time_s,result,zero_stage,recompute,group,"
    "sequence_parallel"
)
GOOD = "16,2048,64,2,2,4,1.5,ok,1,selective,sweep,1"


def _read(folder: Path, *lines: str, header: str = HEADER, groups: list[str] | None = None) -> tuple[Run, ...]:
    path = folder / "runs.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return read_runs(path, "derive.runs", groups)


def test_a_run_has_its_layout_and_its_step_time(tmp_path: Path) -> None:
    (run,) = _read(tmp_path, GOOD)
    layout = run.layout
    assert (run.line, run.num_gpus, run.global_batch_size, run.ran, run.step_time_s) == (2, 16, 64, True, 1.5)
    assert (layout.tp, layout.pp, layout.micro_batch, layout.zero_stage) == (2, 4, 2, 1)
    assert (layout.cp, layout.vpp, layout.ep, layout.etp, layout.recompute) == (1, 1, 1, 1, "selective")
    assert layout.sequence_parallel and run.name == "line 2"


def test_without_a_result_a_run_without_step_time_ran_out_of_memory(tmp_path: Path) -> None:
    header = "num_gpus,sequence_length,global_batch_size,micro_batch,tp,pp,step_time_s"
    runs = _read(tmp_path, "8,2048,64,1,1,1,2", "8,2048,64,1,1,1,", header=header)
    assert [run.ran for run in runs] == [True, False]


def test_a_run_that_ran_need_not_have_a_step_time(tmp_path: Path) -> None:
    (run,) = _read(tmp_path, GOOD.replace("1.5", ""))
    assert run.ran and run.step_time_s is None


def test_memory_of_a_run_is_in_gib_and_may_be_left_out(tmp_path: Path) -> None:
    header = HEADER + ",memory_gib"
    runs = _read(tmp_path, f"{GOOD},60.5", f"{GOOD},", header=header)
    assert [run.peak_bytes for run in runs] == [60.5 * 2**30, None]
    with pytest.raises(BadInputError, match="memory_gib above 0"):
        _read(tmp_path, f"{GOOD},0", header=header)


def test_only_the_groups_that_are_asked_for_are_read(tmp_path: Path) -> None:
    broken = GOOD.replace("16,2048", ",2048").replace("sweep", "other")
    assert len(_read(tmp_path, broken, GOOD, groups=["sweep"])) == 1
    with pytest.raises(BadInputError, match="no run of nowhere"):
        _read(tmp_path, GOOD, groups=["nowhere"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (GOOD.replace("16,", "x,"), "num_gpus, a whole number"),
        (GOOD.replace("16,", "12,"), "tp x cp x pp = 8 does not divide num_gpus 12"),
        (GOOD.replace(",64,", ",66,"), "= 4 does not divide global_batch_size 66"),
        (GOOD.replace(",1,sel", ",4,sel"), "zero_stage 0 to 3"),
        (GOOD.replace("selective", "some"), "recompute none, selective or full"),
        (GOOD[:-1] + "maybe", "sequence_parallel 0 or 1"),
        (GOOD.replace("ok", "good"), "result ok or oom"),
        (GOOD.replace("ok", "oom"), "out of memory and a step time"),
        (GOOD.replace("1.5", "nan"), "step_time_s, a number"),
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(BadInputError, match=r"runs\.csv line 3: ") as caught:
        _read(tmp_path, GOOD, line)
    assert said in caught.value.message and caught.value.where == "derive.runs"


@pytest.mark.skipif("PLAN_REAL_DATA" not in os.environ, reason="PLAN_REAL_DATA is not set")
def test_the_published_sweeps_are_read_as_they_are() -> None:
    path = Path(os.environ["PLAN_REAL_DATA"]) / "layout" / "published_runs.csv"
    runs = read_runs(path, "here", ["aa-13B-2k-32", "aa-30B-8k-64", "aa-65B-2k-64"])
    assert (len(runs), sum(run.ran for run in runs)) == (113, 50)
    assert all((run.step_time_s is None) != run.ran for run in runs)
    assert {run.layout.zero_stage for run in runs} == {1}
    # A row elsewhere in the file states no micro-batch.
    with pytest.raises(BadInputError, match="micro_batch"):
        read_runs(path, "here")
