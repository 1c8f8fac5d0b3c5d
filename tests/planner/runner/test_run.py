"""``plan run``: a plan executed by real processes, what it reports, and what it refuses."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner import api, papers
from planner.errors import BadInputError, RefutedError
from planner.papers import zellige
from planner.papers.zellige.segments import token_range
from planner.program import Beside, Program, RunReport, Split, Stated
from planner.reports.run import print_run
from planner.runner import execute, guard
from planner.runner.execute import RunOptions, run_plan
from profiles.errors import ProfileError
from profiles.measure.processes import RankError, Ranks

ROOT = Path(__file__).resolve().parents[3]
Run = Callable[..., Any]
MODEL = {"name": "tiny", "hidden": 32, "heads": 4, "ffn": 48, "text_tokens": 5, "cross_layers": 2}
TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def explicit(*, tokens: bool = True) -> dict[str, Any]:
    """Two ranks: a sequence of each split, and three whole ones."""
    groups = [("a", 41, "q2", 1), ("b", 43, "h2", 1), ("c", 45, "k2", 1), ("d", 30, "whole", 3)]
    return {
        "paper": "zellige",
        "cluster": {"num_ranks": 2, "gpus_per_node": 2, "memory_cap_bytes": 1e9},
        "configs": [
            {"id": "whole", "q": 1, "h": 1, "k": 1},
            {"id": "q2", "q": 2, "h": 1, "k": 1},
            {"id": "h2", "q": 1, "h": 2, "k": 1},
            {"id": "k2", "q": 1, "h": 1, "k": 2},
        ],
        "groups": [
            {
                "id": name,
                **({"tokens": length} if tokens else {}),
                "sequence_ids": [f"{name}{i}" for i in range(count)],
                "options": [{"config": config, "time_s": 0.1, "memory_bytes": 1e6}],
            }
            for name, length, config, count in groups
        ],
    }


@pytest.fixture
def plan_file(tmp_path: Path) -> str:
    """A plan of explicit costs: three splits of 0.1 s, and 0.2 s of whole sequences on the fuller rank."""
    path = tmp_path / "plan.json"
    api.dump(api.solve(explicit()), path)
    return str(path)


# --- it runs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("library", "transport"),
    [("numpy", "shared_memory"), pytest.param("torch", "gloo", marks=TORCH)],
)
def test_a_plan_runs_and_stands_beside_its_prediction(plan: Run, plan_file: str, library: str, transport: str) -> None:
    ran = plan(
        "run", plan_file, "--model", json.dumps(MODEL), "--repeats", "2", "--library", library,
        "--transport", transport, "--format", "json",
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    report = ran.document
    assert (report["kernels"], report["transport"], report["dtype"]) == (library, transport, "fp32")
    assert len(report["makespans_s"]) == 2
    # Three splits of 0.1 s and two of the three whole sequences.
    assert report["makespan"]["predicted"] == pytest.approx(0.5)
    measured = report["makespan"]["measured"]
    assert 0 < measured < 60
    assert report["makespan"]["relative_error"] == pytest.approx(0.5 / measured - 1)
    assert [row["predicted"] for row in report["ranks"]] == pytest.approx([0.5, 0.4])
    # A rank is busy no longer than the step takes; two repeats, whose median is their mean.
    assert max(row["measured"] for row in report["ranks"]) <= max(report["makespans_s"])
    assert {row["name"]: row["predicted"] for row in report["kinds"]} == pytest.approx(
        {"q2": 0.2, "h2": 0.2, "k2": 0.2, "whole": 0.3}
    )
    assert set(report["numerics"]) == {"q2", "h2", "k2"}
    assert max(report["numerics"].values()) < 1e-5
    assert all(min(work.values()) > 0 for work in report["rank_work_s"])


def test_the_report_reads_well(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (Beside("rank 0", 0.5, 0.4), Beside("rank 1", 0.4, 0.5))
    work = {"products": 0.3, "attention_backward": 0.1}
    print_run(
        RunReport(
            kernels="numpy", transport="shared_memory", dtype="fp32", profile=None, shared_cores=True,
            starved_s=(0.0, 0.15625),
            makespans_s=(0.4, 0.625, 0.7), makespan=Beside("makespan", 0.5, 0.625), ranks=rows, waits_s=(0.0, 0.1),
            kinds=(Beside("q2", 0.2, 0.1),), memory=(Beside("rank 0", 1e6, 0.0),), rank_work_s=(work, work),
            numerics={"q2": 2e-7},
        )
    )  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "2 ranks ran 3 steps after one of warm-up (numpy, fp32, shared_memory)",
        "makespan: predicted 500 ms by the stated costs, measured 625 ms (400 ms to 700 ms): the prediction is "
        "20.00 % too short",
        "split attention equals whole attention, forward and backward, to 2.0e-07 of the largest",
    ]
    assert lines[3].startswith("warning: more ranks than cores")
    assert lines[4] == "warning: other programs kept a rank off its core for 25% of the step"
    assert [" ".join(line.split()) for line in lines[6:9]] == [
        "busy predicted measured error waits",
        "rank 0 500 ms 400 ms +25.0% 0 s",
        "rank 1 400 ms 500 ms -20.0% 100 ms",
    ]
    assert lines[-1].split() == ["rank", "0", "1", "MB", "0", "B", "-"]
    assert all(len(line) <= 80 for line in lines[3:])


def test_a_derived_plan_knows_its_model_and_profile(tmp_path: Path) -> None:
    document = {
        "paper": "zellige",
        "derive": {
            "profile": "h200-sxm", "model": MODEL, "dtype": "bf16", "extrapolate": "roofline",
            "checkpointing": "none", "cluster": {"num_ranks": 1, "gpus_per_node": 1},
            "batch": {"records": [{"tokens": 50}]},
        },
    }  # fmt: skip
    made = api.solve(document)
    program = made.paper.run(made.problem, made.solution, made.inputs.derive, Stated(dtype="fp32"))
    assert (program.model.name, program.recompute, program.profile, program.dtype) == (
        "tiny", False, "h200-sxm", "fp32",
    )  # fmt: skip
    assert [piece.tokens for piece in program.pieces] == [(50,)]


# --- what it executes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [Split(1, 1, 1), Split(2, 1, 3), Split(2, 3, 2), Split(1, 4, 1)])
@pytest.mark.parametrize("tokens", [12, 13, 61])
def test_shards_are_those_of_the_plan(split: Split, tokens: int) -> None:
    for position in range(split.degree):
        start, end = token_range(tokens, split.degree, position)
        assert split.rows(tokens, position) == end - start
        assert split.position(*split.place(position)) == position


def test_run_lists_are_those_of_the_plan(plan_file: str) -> None:
    made = api.load(plan_file)
    program = made.paper.run(made.problem, made.solution, None, Stated(MODEL))
    listed = [[program.pieces[index].config for index in run_list] for run_list in program.run_lists]
    assert listed == [["h2", "k2", "q2", "whole"]] * 2
    assert sorted(tokens for piece in program.pieces for tokens in piece.tokens) == [30, 30, 30, 41, 43, 45]


# --- what it refuses ----------------------------------------------------------------------------------------------


def refused(plan: Run, *arguments: str, code: int = 2) -> dict[str, Any]:
    ran = plan("run", *arguments, "--error-format", "json")
    assert (ran.code, ran.out) == (code, "")
    error: dict[str, Any] = ran.error
    return error


def test_a_gpu_is_refused(plan: Run, plan_file: str) -> None:
    assert "cpu only" in refused(plan, plan_file, "--device", "cuda")["message"]


def test_a_plan_that_is_not_true_is_not_run(plan: Run, plan_file: str) -> None:
    document = json.loads(Path(plan_file).read_bytes())
    document["certificate"]["objective"] = 1.0
    Path(plan_file).write_text(json.dumps(document))
    assert refused(plan, plan_file, code=5)["code"] == "objective"


def test_explicit_costs_do_not_say_what_a_sequence_is(plan: Run, plan_file: str) -> None:
    error = refused(plan, plan_file)
    assert (error["code"], error["where"]) == ("missing_field", "--model")
    assert "made from explicit costs" in error["message"]


def test_a_sequence_without_a_length_cannot_be_run(plan: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    api.dump(api.solve(explicit(tokens=False)), path)
    error = refused(plan, str(path), "--model", "wan2.1-1.3b")
    assert (error["code"], error["where"]) == ("missing_field", "problem.groups.a.tokens")


@pytest.mark.parametrize(
    ("model", "code", "message"),
    [
        ("wan", "unknown_model", "Known: flux, hunyuanvideo, wan2.1-1.3b, wan2.1-14b"),
        ("{", "not_json", "--model is not JSON"),
        ('{"hidden": 8}', "missing_field", "missing field"),
        (json.dumps({**MODEL, "heads": 3}), "out_of_range", "hidden 32 is not a multiple of heads 3"),
        (json.dumps({**MODEL, "heads": 1}), "out_of_range", "1 heads of tiny cannot be split 2 ways"),
    ],
)
def test_a_model_that_is_none(plan: Run, plan_file: str, model: str, code: str, message: str) -> None:
    error = refused(plan, plan_file, "--model", model)
    assert error["code"] == code
    assert message in error["message"]


def test_a_paper_without_a_runner_says_so(plan: Run, plan_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zellige, "PAPER", replace(zellige.PAPER, run=None))
    assert refused(plan, plan_file)["message"] == "plan run cannot execute zellige plans yet"


def test_a_dtype_that_the_library_has_not(plan: Run, plan_file: str) -> None:
    error = refused(plan, plan_file, "--model", json.dumps(MODEL), "--library", "numpy", "--dtype", "bf16")
    assert "numpy runs fp32 here, the plan is priced in bf16" in error["message"]


def test_more_than_the_machine_can_do_is_refused_and_can_be_forced(
    plan: Run, plan_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object, **__: object) -> Ranks:
        raise ProfileError("started", code="out_of_range")

    arguments = (plan_file, "--model", json.dumps(MODEL), "--library", "numpy", "--transport", "shared_memory")
    with monkeypatch.context() as patch:
        patch.setattr(guard, "RANKS_PER_CORE", 0)
        assert "the plan has 2 ranks" in refused(plan, *arguments)["message"]
        patch.setattr(execute, "Ranks", started)
        assert refused(plan, *arguments, "--force")["message"] == "started"
    with monkeypatch.context() as patch:
        patch.setattr(guard, "LONGEST_STEP_S", 0.0)
        assert "a step of this plan takes a CPU about" in refused(plan, *arguments)["message"]
    with monkeypatch.context() as patch:
        patch.setattr(guard, "_available_bytes", lambda: 1e6)
        # 300 MB for the program of each rank, 0.1 MB of weights, and 5 and 4 sequences of 1 MB.
        assert "need about 609 MB together; 1 MB are free" in refused(plan, *arguments)["message"]


def test_split_attention_that_differs_from_whole_is_refuted(plan_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "TOLERANCES", {"fp32": -1.0})
    options = RunOptions(1, "numpy", "shared_memory", Stated(MODEL))
    with pytest.raises(RefutedError, match="attention split by h2 differs from whole attention"):
        run_plan(api.load(plan_file), options)


def test_a_rank_that_fails_ends_the_run_and_is_named(plan_file: str) -> None:
    made = api.load(plan_file)
    program: Program = made.paper.run(made.problem, made.solution, None, Stated(MODEL))
    broken = replace(program, run_lists=(program.run_lists[0], (99,)))
    options = RunOptions(1, "numpy", "shared_memory")
    with pytest.raises(ProfileError, match="rank 1: IndexError"), Ranks(2, "shared_memory") as ranks:
        execute.run_program(broken, ranks, options)
    assert multiprocessing.active_children() == []


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
def test_an_interrupt_ends_the_ranks(plan_file: str) -> None:
    command = ["-m", "planner", "run", plan_file, "--model", json.dumps(MODEL), "--repeats", "1000"]
    options = ["--library", "numpy", "--transport", "shared_memory"]
    ran = subprocess.Popen([sys.executable, *command, *options], cwd=ROOT, stdout=-1, stderr=-1)
    children = Path(f"/proc/{ran.pid}/task/{ran.pid}/children")
    while ran.poll() is None and len(children.read_text().split()) < 3:  # two ranks and Python's resource tracker
        time.sleep(0.05)
    started = children.read_text().split()
    ran.send_signal(signal.SIGINT)
    out, err = ran.communicate()
    assert (ran.returncode, out, err.strip()) == (130, b"", b"interrupted")
    deadline = time.monotonic() + 30
    while (left := [pid for pid in started if Path(f"/proc/{pid}").exists()]) and time.monotonic() < deadline:
        time.sleep(0.05)  # the tracker leaves when it sees that its parent did
    assert left == []


def test_only_bad_input_leaves_the_hook(plan_file: str) -> None:
    made = api.load(plan_file)
    hook = papers.get("zellige").run
    with pytest.raises(BadInputError):
        hook(made.problem, made.solution, {"profile": 3}, Stated())


# --- what is not the plan's fault ---------------------------------------------------------------------------------


def test_a_fault_of_the_model_names_its_field_under_the_option(plan: Run, plan_file: str) -> None:
    ran = plan("run", plan_file, "--model", json.dumps({**MODEL, "hidden": "a"}))
    assert ran.code == 2
    assert ran.err.count("(at ") == 1
    assert ran.err.rstrip().endswith("(at --model.hidden)")


@pytest.fixture
def broken_torch(tmp_path: Path) -> dict[str, str]:
    """An environment whose torch is there and cannot be imported."""
    (tmp_path / "broken" / "torch").mkdir(parents=True)
    fault = "raise OSError('libcudart.so.12: cannot open shared object file')"
    (tmp_path / "broken" / "torch" / "__init__.py").write_text(fault)
    return {**os.environ, "PYTHONPATH": f"{tmp_path / 'broken'}{os.pathsep}{ROOT}"}


@pytest.mark.parametrize("more", [(), ("--library", "torch"), ("--library", "numpy", "--transport", "gloo")])
def test_a_torch_that_cannot_be_imported_is_said_to_be(
    plan_file: str, broken_torch: dict[str, str], more: tuple[str, ...]
) -> None:
    command = [sys.executable, "-m", "planner", "run", plan_file, "--model", json.dumps(MODEL), *more]
    ran = subprocess.run(command, env=broken_torch, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 2
    assert "torch is installed but cannot be imported: libcudart.so.12: cannot open" in ran.stderr
    assert "--library numpy works without it" in ran.stderr


def test_numpy_runs_where_torch_cannot_be_imported(plan_file: str, broken_torch: dict[str, str]) -> None:
    command = [sys.executable, "-m", "planner", "run", plan_file, "--model", json.dumps(MODEL), "--library", "numpy"]
    ran = subprocess.run(command, env=broken_torch, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "numpy, fp32, shared_memory" in ran.stdout


def test_a_rank_that_dies_is_no_fault_of_the_input(plan: Run, plan_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise RankError("rank 1 was ended by signal 9 (out of memory?)", code="out_of_range")

    monkeypatch.setattr(Ranks, "call", dies)
    ran = plan("run", plan_file, "--model", json.dumps(MODEL), "--library", "numpy", "--transport", "shared_memory")
    assert ran.code == 4
    assert ran.err.startswith("limit: rank 1 was ended by signal 9")


def test_a_request_to_terminate_is_an_interrupt(plan: Run, plan_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(execute, "run_plan", lambda *_: signal.raise_signal(signal.SIGTERM))
    ran = plan("run", plan_file, "--model", json.dumps(MODEL))
    assert (ran.code, ran.out, ran.err.strip()) == (130, "", "interrupted")
    assert signal.getsignal(signal.SIGTERM) == before
