"""`plan profile measure` on this machine, for real and small: what it writes is a profile that prices what it ran."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import ProfileError
from profiles.library import load
from profiles.measure import Options, measure
from profiles.measure.kernels import torch_is_importable
from profiles.measure.place import Curve, Place, Unmeasured

ROOT = Path(__file__).resolve().parents[3]
NUMPY = ("--library", "numpy", "--budget", "20s", "--shapes", "16,16", "--max-bytes", "1MB")
OPERATIONS = (
    "gemm",
    "encoder_attention",
    "prefill_attention",
    "decode_attention",
    "moe_gemm",
    "memory_copy",
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "send_recv",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder measured once: all operations, two ranks, numpy and shared memory."""
    folder = tmp_path_factory.mktemp("measured")
    outcome = measure(small(folder, ops=("all",), ranks=2))
    assert outcome.profile == folder / "profile.json"
    return folder


def small(folder: Path, **changes: Any) -> Options:
    """Options whose places are tiny: some points, however slow the machine."""
    facts: dict[str, Any] = {
        "library": "numpy",
        "shapes": ((16, 16),),
        "experts": ((16, 8, 4, 2, 1, 2),),
        "budget_s": 30.0,
        "max_points": 12,
        "max_bytes": 2_000_000,
    }
    return Options(folder=folder, **(facts | changes))


def test_every_operation_is_measured_and_the_profile_prices_it(folder: Path) -> None:
    profile = load(str(folder / "profile.json"))
    assert {table.family for table in profile.document.tables} == set(OPERATIONS)
    assert profile.gemm(1, 16, 16, dtype="fp32").seconds > 0
    for operation in OPERATIONS[-5:]:
        priced = profile.collective(operation, 4096, ranks=2, backend="shared_memory")
        assert priced.seconds > 0


def test_the_profile_says_how_it_was_measured_and_on_what(folder: Path) -> None:
    document = load(str(folder / "profile.json")).document
    assert document.provenance[0].licence == "CC0-1.0"
    assert "numpy" in document.provenance[0].note
    assert document.device.gpus_per_node == 2
    assert any("one of 2" in note or "of 2 that share the machine" in note for note in document.notes)
    tables = {table.family: table for table in document.tables}
    assert tables["gemm"].policy[0].startswith("2 processes ran the same operation at once, 1 thread each")
    assert re.search(r"median of \d+ to \d+ samples; their interquartile range", tables["gemm"].policy[1])
    assert tables["all_reduce"].backend == "shared_memory"
    assert tables["moe_gemm"].workload == "balanced"
    assert tables["memory_copy"].workload == "host_to_host"


def test_nothing_says_who_measured_where_and_when(folder: Path) -> None:
    names = {os.uname().nodename, os.environ.get("USER", ""), str(Path.home()), str(folder)} - {"", "/"}
    for path in folder.iterdir():
        text = path.read_text()
        assert not [name for name in names if len(name) > 2 and name in text and name not in ("root", "cpu")]


def test_each_line_states_a_place_and_its_sample(folder: Path) -> None:
    header, *rows = [json.loads(line) for line in (folder / "measurements.jsonl").read_text().splitlines()]
    assert header["format_version"] == "1.0"
    assert header["ranks"] == 2
    assert set(header["software"]) == {"python", "numpy"}
    for row in rows:
        assert row["median_s"] > 0
        assert row["spread"] >= 0
        assert row["count"] >= 1
        assert row["kernel"].startswith("numpy ")


def test_the_command_goes_on_and_says_what_it_did(plan: Callable[..., Any], tmp_path: Path) -> None:
    words = ("profile", "measure", *NUMPY, "--ops", "gemm,memory_copy", "-o", str(tmp_path / "out"))
    first = plan(*words, "--max-points", "2")
    assert (first.code, first.err) == (0, "")
    assert "2 points, 2 of them new; 2 points are measured" in first.out
    assert f"wrote {tmp_path / 'out' / 'profile.json'}" in first.out
    assert f"next: plan profile check {tmp_path / 'out' / 'profile.json'}" in first.out
    second = plan(*words, "--max-points", "3", "--format", "json")
    assert second.document["points"] == {"gemm": 2, "memory_copy": 1}
    assert second.document["new_points"] == 1
    assert len((tmp_path / "out" / "measurements.jsonl").read_text().splitlines()) == 4


def test_what_was_skipped_is_said_with_its_reason(plan: Callable[..., Any], tmp_path: Path) -> None:
    ran = plan("profile", "measure", *NUMPY, "--ops", "memory_copy", "-o", str(tmp_path), "--max-bytes", "100kB",
               "--tolerance", "10")  # fmt: skip
    assert ran.code == 0
    assert "skipped: memory_copy int8 host_to_host message_bytes 65536: needs 0.000131 GB, max_bytes allows" in ran.out


def test_where_nothing_can_be_measured_a_limit_is_reached_and_no_profile_written(
    plan: Callable[..., Any], tmp_path: Path
) -> None:
    ran = plan("profile", "measure", *NUMPY[:-1], "1", "--ops", "gemm", "-o", str(tmp_path / "out"))
    assert ran.code == 4
    assert ran.err.startswith("limit: no point was measured: gemm fp32 n 16, k 16, m 1: needs")
    assert not (tmp_path / "out" / "profile.json").exists()


def test_a_log_of_other_conditions_stops_the_command(plan: Callable[..., Any], folder: Path) -> None:
    before = (folder / "measurements.jsonl").read_bytes()
    ran = plan("profile", "measure", *NUMPY, "--ops", "gemm", "-o", str(folder), "--threads", "3")
    assert ran.code == 2
    assert "threads 1 there, 3 here" in ran.err
    assert "ranks 2 there, 1 here" in ran.err
    assert (folder / "measurements.jsonl").read_bytes() == before


def test_a_dry_run_prints_the_grid_and_touches_nothing(plan: Callable[..., Any], tmp_path: Path) -> None:
    words = ("profile", "measure", "--dry-run", *NUMPY, "--ops", "gemm,all_gather", "-o", str(tmp_path / "out"))
    ran = plan(*words)
    assert ran.out == (
        "gemm fp32 n 16, k 16: m 1, 8, 64, 512, 4096, 8192\n"
        "all_gather fp32 shared_memory nodes 1, ranks 2: message_bytes 4096, 65536, 1048576, 16777216, 268435456\n"
        "11 points on 2 curves first, then where they bend; 20 s in all\n"
    )
    assert not (tmp_path / "out").exists()
    curves = plan(*words, "--format", "json").document["curves"]
    assert curves[0] == {
        "family": "gemm", "dtype": "fp32", "backend": "", "workload": "",
        "axes": {"n": 16, "k": 16}, "along": "m", "sizes": [1, 8, 64, 512, 4096, 8192],
    }  # fmt: skip


def test_a_dry_run_for_a_gpu_needs_no_gpu(plan: Callable[..., Any]) -> None:
    ran = plan("profile", "measure", "--dry-run", "--device", "cuda", "--ops", "gemm,all_reduce", "--ranks", "4",
               "--shapes", "64,64", "--format", "json")  # fmt: skip
    assert [(curve["family"], curve["dtype"], curve["axes"]) for curve in ran.document["curves"]] == [
        ("gemm", "bf16", {"n": 64, "k": 64}),
        ("all_reduce", "bf16", {"nodes": 1, "ranks": 2}),
        ("all_reduce", "bf16", {"nodes": 1, "ranks": 4}),
    ]


@pytest.mark.parametrize(
    ("words", "where", "message"),
    [
        (("--ops", "gem"), "ops", "unknown operation 'gem'; did you mean 'gemm'?"),
        (("--ops", ","), "ops", "expected operations; known: gemm"),
        (("--dtype", "fp8"), "dtypes", "unknown dtype 'fp8'"),
        (("--library", "numpy", "--dtype", "bf16"), "dtypes", "numpy measures fp32 on a CPU, not bf16"),
        (("--library", "jax"), "library", "unknown library 'jax'"),
        (("--backend", "mpi"), "backend", "unknown backend 'mpi'"),
        (("--ranks", "65"), "ranks", "expected ranks in 1..64, got 65"),
        (("--threads", "0"), "threads", "expected threads in 1..1024, got 0"),
        (("--budget", "soon"), "budget", "expected a budget such as 60s, 5m or 1h, got 'soon'"),
        (("--budget", "0"), "budget_s", "expected budget_s in 0.1..604800, got 0"),
        (("--tolerance", "nan"), "tolerance", "expected tolerance in 0.001..10, got nan"),
        (("--max-points", "0"), "max_points", "expected max_points in 1..1e+06, got 0"),
        (("--max-bytes", "2 parsecs"), "max_bytes", "expected bytes such as 500MB or 2GiB, got '2 parsecs'"),
        (("--shapes", "64"), "shapes", "expected n,k separated by semicolons, got '64'"),
        (("--shapes", "64,0"), "shapes", "expected shapes in 1.."),
        (("--experts", "1,2,3"), "experts", "expected hidden,ffn,experts,top_k,tensor_ranks,expert_ranks"),
        (("--experts", "8,9,4,2,2,1"), "experts", "expected tensor_ranks to divide ffn"),
        (("--experts", "8,8,4,5,1,1"), "experts", "expected top_k of at most 4 experts, got 5"),
        (("--name", "My CPU"), "name", "expected a name of lower-case letters"),
        (("--licence", ""), "licence", "expected a licence of 1 to 200 printable characters, got ''"),
        (("--licence", "x" * 201), "licence", "expected a licence of 1 to 200 printable characters"),
        (("--licence", "a\x1b[31m"), "licence", "expected a licence of 1 to 200 printable characters"),
        (("--experts", "1,1,16777216,16777216,1,1"), "experts", "expected experts in 1..4096, got 1.67772e+07"),
        (("--ops", "all_gather", "--ranks", "1"), "ranks", "expected --ranks 2 or more for collectives (all_gather)"),
        (("--ops", "gemm,collectives", "--ranks", "1"), "ranks", "expected --ranks 2 or more for collectives"),
        (("--dry-run", "--ops", "all_gather", "--ranks", "1"), "ranks", "expected --ranks 2 or more for collectives"),
        (
            ("--dry-run", "--device", "cuda", "--ops", "all_reduce", "--ranks", "1"),
            "ops",
            "nothing to measure of all_reduce: collectives need two ranks or more",
        ),
        (
            ("--model", "wan2.1-1.3b", "--ops", "moe_gemm"),
            "ops",
            "nothing to measure of moe_gemm: wan2.1-1.3b asks for none of it",
        ),
        (("--model", "wan"), None, "unknown model 'wan'"),
    ],
)
def test_options_that_cannot_be_are_refused_in_one_line(
    plan: Callable[..., Any], tmp_path: Path, words: tuple[str, ...], where: str | None, message: str
) -> None:
    ran = plan("--error-format", "json", "profile", "measure", *words, "-o", str(tmp_path / "out"))
    assert ran.code == 2
    assert message in ran.error["message"]
    assert ran.error["where"] == where
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_folder_to_measure_into(plan: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text("mine")
    ran = plan("profile", "measure", *NUMPY, "--ops", "gemm", "-o", str(tmp_path / "out.json"))
    assert ran.code == 2
    assert "expected a folder, got the file" in ran.err
    assert (tmp_path / "out.json").read_text() == "mine"


def test_a_profile_that_cannot_be_written_is_said_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "profile.json").mkdir()
    with pytest.raises(ProfileError, match=r"cannot write profile\.json: it is a folder"):
        measure(small(tmp_path, ops=("gemm",)))
    assert not (tmp_path / "measurements.jsonl").exists()


def test_gloo_without_torch_is_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profiles.measure.cpu.torch_is_importable", lambda: False)
    with pytest.raises(ProfileError, match="gloo needs torch"):
        measure(small(tmp_path, backend="gloo"))


def test_a_folder_is_needed_unless_nothing_is_run(plan: Callable[..., Any]) -> None:
    ran = plan("profile", "measure")
    assert (ran.code, ran.err) == (2, "bad input: expected a folder: -o DIR (at output)\n")


def test_without_ranks_collectives_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    outcome = measure(small(tmp_path, ops=("all",), max_points=1))
    assert outcome.points == {"gemm": 1}
    assert outcome.notes == ("no collectives: they need --ranks 2 or more",)


def test_torchrun_is_not_for_cpus(tmp_path: Path) -> None:
    started = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    with pytest.raises(ProfileError, match="torchrun is for device cuda; on a CPU ranks are started by --ranks"):
        measure(small(tmp_path), environment=started)


def test_progress_is_told_the_share_and_the_place(tmp_path: Path) -> None:
    seen: list[tuple[float, str]] = []
    measure(small(tmp_path, ops=("memory_copy",), max_points=2), lambda done, what: seen.append((done, what)))
    assert [what for _, what in seen[:3]] == [
        "starting",
        "memory_copy int8 host_to_host message_bytes 4096",
        "memory_copy int8 host_to_host message_bytes 65536",
    ]
    assert all(0 <= done <= 1 for done, _ in seen)
    assert seen[-1][0] == 1.0


@pytest.mark.skipif(not torch_is_importable(), reason="gloo needs torch")
def test_torch_and_gloo_measure_two_processes(tmp_path: Path) -> None:
    options = small(
        tmp_path, library="torch", ops=("gemm", "moe_gemm", "all_gather"), ranks=2, dtypes=("bf16",), max_points=3
    )
    outcome = measure(options)
    profile = load(str(outcome.profile))
    assert profile.gemm(1, 16, 16, dtype="bf16").seconds > 0
    tables = {table.family: table for table in profile.document.tables}
    assert tables["all_gather"].backend == "gloo"
    assert tables["all_gather"].kernels[0].startswith("torch gloo ")
    assert set(outcome.points) == {"gemm", "moe_gemm", "all_gather"}


def test_ranks_that_fail_are_started_again_and_after_three_times_it_ends(tmp_path: Path) -> None:
    from profiles.measure.cpu import CpuBench

    bench = CpuBench(small(tmp_path))
    # No such operation in numpy's float32: the rank raises and its processes end.
    wrong = Place(Curve("gemm", "bf16", "", "", (("n", 4), ("k", 4))), 4)
    right = Place(Curve("gemm", "fp32", "", "", (("n", 4), ("k", 4))), 4)
    try:
        found = bench.measure(wrong, 0.01)
        assert isinstance(found, Unmeasured)
        assert found.reason == "rank 0: ValueError: numpy measures fp32, not bf16"
        assert not isinstance(bench.measure(right, 0.01), Unmeasured)
        assert isinstance(bench.measure(wrong, 0.01), Unmeasured)
        assert isinstance(bench.measure(wrong, 0.01), Unmeasured)
        with pytest.raises(ProfileError, match="rank 0: ValueError"):
            bench.measure(wrong, 0.01)
    finally:
        bench.close()


def test_an_interrupt_keeps_the_log_and_the_next_run_goes_on(plan: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    words = ["profile", "measure", *NUMPY, "--ops", "gemm,memory_copy", "-o", str(folder), "--budget", "10m",
             "--tolerance", "0.001"]  # fmt: skip
    running = subprocess.Popen(
        [sys.executable, "-m", "planner", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    log = folder / "measurements.jsonl"
    while running.poll() is None and not (log.exists() and log.read_bytes().count(b"\n") >= 3):
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    _, talk = running.communicate(timeout=60)
    assert running.returncode == 130
    assert talk.split("\n") == [
        "what was measured is kept, and the same command goes on from there",
        "",
        "interrupted",
        "",
    ]
    kept = log.read_text().splitlines()
    again = plan(*words, "--max-points", str(len(kept)), "--format", "json")
    assert again.code == 0
    assert again.document["new_points"] == 1
    assert log.read_text().splitlines()[: len(kept)] == kept
