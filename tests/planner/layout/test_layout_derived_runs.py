"""A derived layout problem that learns its prices from a file of measured runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import BadInputError
from planner.paper import Derivation, DeriveOptions
from planner.papers.layout.cost import derive
from planner.papers.layout.derived import LayoutDerivedProblem
from planner.papers.layout.evaluate import evaluate
from planner.papers.layout.layouts import Layout
from planner.papers.layout.problem import LayoutProblem
from planner.validation import validate

LINK = {"bandwidth_bytes_per_s": 5e10, "latency_s": 1e-5}
HEADER = "num_gpus,sequence_length,global_batch_size,micro_batch,tp,pp,sequence_parallel,zero_stage,step_time_s"
LAYOUTS = [
    (tp, pp, b, sp) for sp in (False, True) for b in (1, 2) for tp in (1, 2, 4, 8) for pp in (1, 2) if tp > 1 or not sp
]


def derived(folder: Path, **changes: Any) -> Derivation[LayoutProblem]:
    given = {
        "paper": "layout",
        "batch": {"global_batch_size": 64, "sequence_length": 2048},
        "search": {"cp": [1], "vpp": [1], "partitions": ["even"]},
        "derive": {
            "model": "llama-3.1-8b",
            "profile": "h100-sxm",
            "extrapolate": "roofline",
            "cluster": {"num_ranks": 16, "gpus_per_node": 8, "inter_node": LINK},
            **changes,
        },
    }
    return derive(validate(LayoutDerivedProblem, given), DeriveOptions(base_folder=str(folder)))


def write_runs(folder: Path, calibration: dict[str, float]) -> None:
    """Step times of a machine whose kernels are so much slower than the profile's, without noise."""
    problem = derived(folder, calibration=calibration).problem
    lines = [HEADER]
    for tp, pp, b, sp in LAYOUTS:
        partition = (32 // pp,) * pp
        layout = Layout(tp, 1, pp, 1, 1, 1, 1, "none", b, sp, partition)
        step = evaluate(problem, layout).step_time_s
        lines.append(f"16,2048,64,{b},{tp},{pp},{int(sp)},1,{step!r}")
    (folder / "runs.csv").write_text("\n".join(lines) + "\n")


def test_runs_of_a_slower_machine_give_its_multipliers_and_its_step_times(tmp_path: Path) -> None:
    slow = {"gemm": 1.25, "communication": 1.5}
    write_runs(tmp_path, slow)
    found = derived(tmp_path, runs={"path": "runs.csv"})
    learned = found.derive["resolved"]["runs"]  # type: ignore[index,call-overload]
    # drawn a little towards 1, as whoever fits doubts: within a few percent
    assert learned["calibration"]["gemm"] == pytest.approx(1.25, rel=0.04)
    assert learned["calibration"]["communication"] == pytest.approx(1.5, rel=0.1)
    truth = derived(tmp_path, calibration=slow).problem
    for tp, pp, b, sp in LAYOUTS:
        layout = Layout(tp, 1, pp, 1, 1, 1, 1, "none", b, sp, (32 // pp,) * pp)
        mine, real = (evaluate(each, layout).step_time_s for each in (found.problem, truth))
        assert mine == pytest.approx(real, rel=0.02)
    assert found.cost_error is not None
    assert found.cost_error["median"] < 0.02
    assert "uncalibrated" not in (found.problem.cautions or {})


def test_the_file_of_runs_is_named_by_its_digest_alone(tmp_path: Path) -> None:
    folder = tmp_path / "measured"
    folder.mkdir()
    write_runs(folder, {"gemm": 1.1})
    found = derived(tmp_path, runs={"path": "measured/runs.csv"})
    assert list(found.arrays) == ["runs.csv"]
    assert "measured" not in json.dumps(found.derive["runs"])  # type: ignore[index,call-overload]


def test_runs_that_the_model_has_no_price_for_name_their_line(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text(f"{HEADER}\n16,2048,512,32,1,1,0,1,2.0\n")
    with pytest.raises(BadInputError) as caught:
        derived(tmp_path, runs={"path": "runs.csv"}, extrapolate="refuse")
    assert caught.value.where == "derive.runs"
    assert "m 65536 is outside" in str(caught.value)  # 32 sequences of 2,048 tokens
    assert "line 2" in str(caught.value)


def test_a_file_of_runs_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as caught:
        derived(tmp_path, runs={"path": "nowhere.csv"})
    assert "nowhere.csv" in str(caught.value)


def told_of(folder: Path, lines: list[str], header: str = HEADER, **changes: Any) -> dict[str, str]:
    """The warnings of a problem with these runs."""
    (folder / "runs.csv").write_text("\n".join([header, *lines]) + "\n")
    return derived(folder, runs={"path": "runs.csv"}, **changes).problem.cautions or {}


def refusal(folder: Path, lines: list[str], header: str = HEADER) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        told_of(folder, lines, header)
    return caught.value


def one_run(step_time_s: float) -> str:
    """64 sequences of 2,048 tokens on 16 GPUs; about 0.6 s as priced."""
    return f"16,2048,64,1,2,1,1,1,{step_time_s!r}"


def test_step_times_in_milliseconds_are_refused_with_the_line_and_the_unit(tmp_path: Path) -> None:
    error = refusal(tmp_path, [one_run(0.9), one_run(900.0)])
    assert error.where == "derive.runs"
    assert error.message.startswith("line 3: a step of 900 s")
    assert "in seconds?" in error.message


def test_a_step_that_takes_more_than_the_peak_of_its_gpus_is_refused(tmp_path: Path) -> None:
    """6 x 7.5e9 parameters in products x 131,072 tokens over 16 GPUs are 3.7e14 operations: at 989e12/s 0.37 s."""
    error = refusal(tmp_path, [one_run(0.36)])
    assert "FLOP/s of each GPU" in error.message
    assert "uncalibrated" in told_of(tmp_path, [one_run(0.39)])


def test_runs_far_from_their_prices_and_few_of_them_are_warned_of(tmp_path: Path) -> None:
    told = told_of(tmp_path, [one_run(0.8), one_run(4.0)])
    assert "(line 3) times as long as priced" in told["runs_far_off"]
    assert told["uncalibrated"].startswith("prices are fitted to 2 timed runs")
    assert "runs_far_off" not in told_of(tmp_path, [one_run(0.8)])


def test_runs_of_another_model_are_refused_and_longer_names_of_ours_are_not(tmp_path: Path) -> None:
    error = refusal(tmp_path, [f"{one_run(0.8)},llama-3.1-70b"], f"{HEADER},model")
    assert error.message.startswith("line 2: a run of llama-3.1-70b, but prices are of llama-3.1-8b")
    assert told_of(tmp_path, [f"{one_run(0.8)},meta-llama/Llama-3.1-8B-Instruct"], f"{HEADER},model")


def test_columns_that_nobody_reads_are_named(tmp_path: Path) -> None:
    told = told_of(tmp_path, [f"{one_run(0.8)},3,64"], f"{HEADER},zero,memory_gib")
    assert told["run_columns_unread"].startswith("columns of the runs that are not read: zero;")
    assert "run_columns_unread" not in told_of(tmp_path, [one_run(0.8)])


def test_more_memory_than_the_device_has_is_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path, [f"{one_run(0.8)},81"], f"{HEADER},memory_gib")
    assert error.message == "line 2: memory_gib 81 of a device of 80 GiB"


def test_memory_rows_that_contradict_the_bytes_are_warned_of(tmp_path: Path) -> None:
    """Small micro-batches on 8 tensor ranks ran out of memory, one of 8 sequences without tensor ranks ran."""
    small, large = "16,2048,64,1,8,2,1,1,", "16,2048,128,8,1,1,0,0,3.0"
    told = told_of(tmp_path, [small, small, large])
    assert told["memory_runs_contradict"].startswith("of 2 runs out of memory 0 are foreseen, and 1 of 1 that ran")
    assert "memory_runs_contradict" not in told_of(tmp_path, ["16,2048,128,8,1,1,0,0,", one_run(0.8)])
