"""Files of another kind: refused with what they look like and the importer to use, never with a traceback."""

import os
from pathlib import Path

import numpy as np
import pytest

from profiles.errors import ProfileError
from profiles.importers import FORMATS, formats, run
from profiles.importers.assembly import within_bounds
from profiles.importers.parquet import read_parquet
from profiles.making.building import RawRows

READ_FILES = [name for name in formats() if FORMATS[name].needs_files]
KINDS = (
    ("<!DOCTYPE html><html></html>", "a web page"),
    ("NetworkLoad Tests v1.3\n  Test with 10 MPI ranks\n", "GPCNeT output"),
    ("ERROR: this application must be run on at least 10 nodes\n", "GPCNeT output"),
    ("                    RDMA_Write BW Test\n 8388608 20000 24056.74 24056.72 0.003\n", "ib_write_bw"),
    ("STREAM Benchmark\nBuffer size(bytes): 4294967296\n", "GPU STREAM output"),
    ("cpu_to_gpu0_by_sm_under_numa0 26.2409\n", "SuperBench gpu_copy output"),
    ("bandwidthTest-D2D, Bandwidth = 0.4 GB/s, Time = 0.0 s, Size = 1000 bytes\n", "CUDA bandwidthTest output"),
    ("D2H_Bandwidth_pinned +064By GB/sec 0.0000 0.0000\n", "hipBusBandwidth output"),
    (" iteration 1/ 10 | elapsed time per iteration (ms): 5014.2\n", "a training log"),
)


def options(name: str) -> dict[str, int]:
    return {"buffer_bytes": 1 << 29} if "buffer_bytes" in FORMATS[name].options else {}


@pytest.mark.parametrize("name", READ_FILES)
@pytest.mark.parametrize(("text", "what"), KINDS, ids=[what for _, what in KINDS])
def test_a_file_of_another_kind_is_told_by_name(tmp_path: Path, name: str, text: str, what: str) -> None:
    path = tmp_path / "some.file"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        run(name, [str(path)], **options(name))
    assert f"it looks like {what}" in caught.value.message or (what == "ib_write_bw" and what in caught.value.message)


@pytest.mark.parametrize(
    ("text", "importer"),
    [
        ("#  Rank  0\n8 2 float sum -1 10 0 0 0 10 0 0 0\n# Collective test: all_reduce_perf busbw\n", "nccl-tests"),
        ("time_stats.add.median,n_head\n", "vidur"),
        ("Dispatch #EP,Latency,RDMA bandwidth\n", "deepep"),
        ("nvbandwidth Version: v0.6\n", "nvbandwidth"),
        ('{"prefill_isl": []}', "dynamo"),
    ],
)
def test_the_importer_that_reads_it_is_named(tmp_path: Path, text: str, importer: str) -> None:
    path = tmp_path / "some.file"
    path.write_text(text, encoding="utf-8")
    for name in READ_FILES:
        if name != importer and (name, importer) != ("rccl-tests", "nccl-tests"):
            with pytest.raises(ProfileError) as caught:
                run(name, [str(path)], **options(name))
            assert f"import it as {importer}" in caught.value.message


@pytest.mark.parametrize("name", READ_FILES)
def test_binary_empty_and_missing_files_are_refused_in_one_line(tmp_path: Path, name: str) -> None:
    for content, message in (
        (bytes(range(256)) * 8, "is not text"),
        (b" \n", "is empty"),
        (b"\xff\xfe\x00x", "not text"),
    ):
        path = tmp_path / "some.file"
        path.write_bytes(content)
        with pytest.raises(ProfileError, match=message):
            run(name, [str(path)], **options(name))
    with pytest.raises(ProfileError, match="cannot read none: No such file"):
        run(name, [str(tmp_path / "none")], **options(name))
    with pytest.raises(ProfileError, match="name at least one file to import"):
        run(name, [], **options(name))


def test_options_of_another_format_are_refused() -> None:
    with pytest.raises(ProfileError, match="vidur takes no --system: it is for aiconfigurator"):
        run("vidur", ["x"], system="h200_sxm")


def test_a_name_that_no_profile_can_have_is_bad_input(tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "data" / "deepep" / "v1.2.1_README_line30.csv"
    with pytest.raises(ProfileError, match="the imported profile: String should match pattern") as caught:
        run("deepep", [str(path)], name="My Card")
    assert caught.value.where == "name"


def test_rows_that_no_profile_can_hold_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "all_gather.csv"
    path.write_text(
        "collective,num_workers,size,devices_per_node,max_devices_per_node,time_stats.all_gather.median\n"
        "all_gather,4,1024,4,8,0.1\nall_gather,8000000000000,8000000000000,1,8,0.1\n",
        encoding="utf-8",
    )
    document, report = run("vidur", [str(path)])
    assert document.tables[0].columns["message_bytes"] == [4096]
    # 8e12 ranks of 8e12 bytes; an axis holds less than 2^44.
    assert report.refused == (
        "all_gather.csv:3: message_bytes would be 64000000000000000000000000: expected at most 17592186044415",
    )


def test_rows_out_of_bounds_are_dropped_before_they_are_a_profile() -> None:
    columns = {"m": np.array([8, 0, 16, 2**44, 32]), "n": np.ones(5, int), "k": np.ones(5, int)}
    raw = RawRows("gemm", "bf16", columns, np.array([1e-3, 1e-3, 1e7, 1e-3, 2e-3]), "x")
    (kept,), (line,) = within_bounds([raw])
    assert kept.columns["m"].tolist() == [8, 32]
    assert line.startswith("x: gemm/bf16: 3 rows refused: expected m, n, k in 1..17592186044415 and a time in ")


def test_a_file_in_place_of_the_databases_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gemm_perf.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(ProfileError, match=r"gemm_perf.parquet is not a folder"):
        run("aiconfigurator", [str(path)], system="h200_sxm")
    (tmp_path / "card.yaml").write_text("gpu: [", encoding="utf-8")
    (tmp_path / "data" / "card").mkdir(parents=True)
    with pytest.raises(ProfileError, match=r"card.yaml does not describe a system as expected"):
        run("aiconfigurator", [str(tmp_path)], system="card")


@pytest.mark.skipif("PLAN_REAL_DATA" not in os.environ, reason="PLAN_REAL_DATA is not set")
def test_every_real_file_is_read_or_refused_by_every_importer() -> None:
    root = Path(os.environ["PLAN_REAL_DATA"])
    files = sorted([*(root / "memory_p2p").glob("*.log"), *(root / "comm_deepep").glob("*.csv")])
    assert len(files) >= 15
    read = {}
    for path in files:
        for name in READ_FILES:
            try:
                read[path.name, name] = run(name, [str(path)], **options(name)).document
            except ProfileError as error:
                assert path.name in error.message
    assert sorted(read) == [("nvbandwidth_results.log", "nvbandwidth"), ("v1.2.1_README_line30.csv", "deepep")]


@pytest.mark.parametrize("name", READ_FILES)
def test_a_binary_file_is_never_advised_to_be_imported_as_what_it_was(tmp_path: Path, name: str) -> None:
    words = {
        "dynamo": b"prefill_isl",
        "vidur": b"time_stats.add",
        "deepep": b"Dispatch #EP",
        "nvbandwidth": b"memcpy CE ",
    }
    path = tmp_path / "some.file"
    path.write_bytes(words.get(name, b"all_reduce_perf") + b"\0\1")
    with pytest.raises(ProfileError, match="is not text") as caught:
        run(name, [str(path)], **options(name))
    assert f"import it as {name}" not in caught.value.message


@pytest.mark.parametrize("name", READ_FILES)
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for path in ("pipe", "link"):
        with pytest.raises(ProfileError, match=f"{path} is not a regular file"):
            run(name, [str(tmp_path / path)], **options(name))


def test_a_pipe_in_place_of_a_parquet_table_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(ProfileError, match=r"pipe.parquet is not a regular file"):
        read_parquet(tmp_path / "pipe.parquet")
