"""nccl-tests logs: each trap of real logs, and every real log read or refused with line and reason."""

import os
from pathlib import Path

import pytest

from profiles.errors import ProfileError
from profiles.importers import formats, run
from profiles.importers.nccl_log import read_log

DATA = Path(__file__).parents[1] / "data" / "nccl_logs"
HEAD = "# Collective test starting: all_reduce_perf\n"
RANKS = "".join(
    f"#  Rank  {r} Group  0 Pid 1 on node0{r // 2} device {r % 2} [0009:01:00] NVIDIA X\n" for r in range(4)
)


def row(size: int, time: float, *, kind: str = "float", redop: str = "sum -1", inside: str | None = None) -> str:
    alg = size / time / 1e3
    bus = alg * 1.5
    again = inside or f"{time * 2:.2f} {alg / 2:.2f} {bus / 2:.2f} 0"
    return f"  {size}  {size // 4}  {kind}  {redop}  {time:.2f}  {alg:.2f}  {bus:.2f}  0  {again}\n"


def gathered(size: int, time: float, ranks: int, redop: str = "none -1") -> str:
    """A row of all_gather: the count is one rank's, busbw is (n - 1) / n of algbw."""
    alg = size / time / 1e3
    half = f"{time:.2f} {alg:.2f} {alg * (ranks - 1) / ranks:.2f} 0"
    return f"  {size}  {size // 4 // ranks}  float  {redop}  {half}  {half}\n"


def log(*lines: str) -> str:
    return HEAD + RANKS + "".join(lines)


def test_microseconds_become_seconds_and_ranks_and_nodes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(log(row(1_000_000, 100.0), row(2_000_000, 150.0), row(4_000_000, 250.0)), encoding="utf-8")
    document, report = run("nccl-tests", [str(path)], name="my-cluster")
    table = next(table for table in document.tables if table.backend == "nccl")
    assert table.family == "all_reduce"
    assert table.dtype == "fp32"
    assert table.columns == {"nodes": [2] * 3, "ranks": [4] * 3, "message_bytes": [1_000_000, 2_000_000, 4_000_000]}
    assert table.latency_s == [1e-4, 1.5e-4, 2.5e-4]
    assert document.device.name == "NVIDIA X"
    assert document.device.gpus_per_node == 2
    assert document.name == "my-cluster"
    assert report.notes[-1] == "6 rows read, 0 lines refused"
    assert report.refused == ()


def test_in_place_and_out_of_place_are_two_tables(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(log(row(1_000_000, 100.0), row(2_000_000, 150.0)), encoding="utf-8")
    document, _ = run("nccl-tests", [str(path)])
    by_backend = {table.backend: table.latency_s for table in document.tables}
    assert by_backend == {"nccl": [1e-4, 1.5e-4], "nccl_in_place": [2e-4, 3e-4]}


@pytest.mark.parametrize(
    "prefix", ["", "0: ", "[1,0]<stdout>:", "  12: ", "node-01: ", "node01.lan:\t", "[node01] ", "[0]: "]
)
def test_launcher_prefixes_are_stripped(prefix: str) -> None:
    text = "".join(prefix + line for line in log(row(1_000_000, 100.0)).splitlines(keepends=True))
    found = read_log(text, "x.log")
    assert [(r.message_bytes, r.ranks, r.nodes) for r in found.rows] == [(1_000_000, 4, 2)]


def test_library_output_between_rows_is_passed_over() -> None:
    text = log(row(1_000_000, 100.0), "node:3442:3442 [0] NCCL INFO Launch mode Parallel\n", row(2_000_000, 150.0))
    found = read_log(text, "x.log")
    assert len(found.rows) == 2
    assert found.refused == ()


def test_blank_redop_and_root_do_not_shift_the_columns() -> None:
    found = read_log(log(row(1_000_000, 100.0, redop=""), row(2_000_000, 150.0, redop="sum")), "x.log")
    assert [r.out_of_place_us for r in found.rows] == [100.0, 150.0]


def test_not_available_in_place_leaves_the_out_of_place_time() -> None:
    found = read_log(log(row(1_000_000, 100.0, inside="N/A N/A N/A N/A")), "x.log")
    assert [(r.out_of_place_us, r.in_place_us) for r in found.rows] == [(100.0, None)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("  0  0  float  sum  -1  0.26 0.00 0.00 0  0.25 0.00 0.00 0\n", "size 0 moves nothing"),
        ("  268435456 4194304 float none -1 XXXXX XXX.XX XXX.XX N/A XXXXXX XXX.XX XXX.XX 0\n", "placeholder"),
        ("  1024 256 float sum -1 10.0 0.10\n", "expected at least 11 columns"),
        ("  1024 256 complex sum -1 10.0 0.10 0.10 0 10.0 0.10 0.10 0\n", "unknown type 'complex'"),
        ("  1000000 250000 float sum -1 100.0 10.00 15.00 7 100.0 10.00 15.00 0\n", "wrong results"),
        ("  1000000 250000 float sum -1 0.1 10.00 15.00 0 100.0 10.00 15.00 0\n", "not the 10.0 GB/s stated"),
        ("  1000000 250000 float sum -1 -5 10.00 15.00 0 100.0 10.00 15.00 0\n", "expected a time > 0"),
    ],
)
def test_a_bad_line_is_refused_with_its_number_and_the_good_ones_stay(line: str, reason: str) -> None:
    found = read_log(log(row(1_000_000, 100.0), line, row(2_000_000, 150.0)), "x.log")
    assert len(found.rows) == 2
    assert len(found.refused) == 1
    assert found.refused[0].startswith("x.log:7: ")
    assert reason in found.refused[0]


def test_an_elision_is_remarked() -> None:
    found = read_log(log(row(1_000_000, 100.0), "...\n", row(4_000_000, 250.0)), "x.log")
    assert found.remarks == ("x.log:7: rows are left out here ('...')",)


def test_without_a_device_list_ranks_come_from_the_bandwidths_and_nodes_are_an_assumption() -> None:
    # busbw / algbw = 1.875 = 2 x 15/16: sixteen ranks.
    line = " 67108864 16777216 float sum -1 996.0 67.38 126.33 0 1001.7 66.99 125.62 0\n"
    found = read_log(line, "x.log")
    assert [(r.operation, r.ranks, r.nodes) for r in found.rows] == [("all_reduce", 16, 2)]
    assert "16 ranks told from the rows; 2 nodes assumed" in found.remarks[0]


def test_a_log_that_names_no_test_is_refused_until_the_user_names_it(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(" 1048576 16384 float none -1 996.7 1.05 0.99 N/A 1007.1 1.04 0.98 N/A\n", encoding="utf-8")
    with pytest.raises(ProfileError, match=r"run.log:1: the log does not say which collective.*all_gather=FILE"):
        run("nccl-tests", [str(path)])
    document, _ = run("nccl-tests", [f"all_gather={path}"])
    assert {table.family for table in document.tables} == {"all_gather"}


def test_a_log_without_rows_says_first_what_can_be_done(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    zero = " 0 0 float none -1 0.26 0.00 0.00 0 0.25 0.00 0.00 0\n"
    row = " 1048576 16384 float none -1 996.7 1.05 0.99 N/A 1007.1 1.04 0.98 N/A\n"
    path.write_text(zero * 4 + row, encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        run("nccl-tests", [str(path)])
    first, second = caught.value.message.removeprefix("no row could be read: ").split("; ")
    assert first.startswith("run.log:5: the log does not say which collective it measured")
    assert second == "run.log:1: size 0 moves nothing (4 lines)"


def test_a_log_without_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    for path in ("/dev/zero", str(tmp_path / "pipe.log"), f"all_gather={tmp_path / 'pipe.log'}"):
        with pytest.raises(ProfileError, match="is not a regular file"):
            run("nccl-tests", [path])


@pytest.mark.parametrize(("size", "time"), [("9" * 4000, "1.0"), ("1000000", "nan"), ("1000000", "inf")])
def test_numbers_beyond_reason_are_refused(size: str, time: str) -> None:
    found = read_log(log(f" {size} 1 float sum -1 {time} 10.00 15.00 0 {time} 10.00 15.00 0\n"), "x.log")
    assert (len(found.rows), len(found.refused)) == (0, 1)


def test_a_test_that_is_no_collective_of_ours_is_refused_by_name() -> None:
    found = read_log(log(row(1_000_000, 100.0)).replace("all_reduce_perf", "reduce_perf"), "x.log")
    assert found.rows == ()
    assert "reduce (not a collective we price) is not read" in found.refused[0]


def test_two_tests_in_one_file_are_two_tables(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    text = log(row(1_000_000, 100.0)) + log(gathered(1_000_000, 70.0, ranks=4)).replace("all_reduce", "all_gather")
    path.write_text(text, encoding="utf-8")
    document, _ = run("nccl-tests", [str(path)])
    assert sorted({table.family for table in document.tables}) == ["all_gather", "all_reduce"]


def test_the_old_header_without_a_root_column_is_read() -> None:
    document, report = run("nccl-tests", [str(DATA / "superbenchmark_nccl_allreduce.log")])
    table = next(table for table in document.tables if table.backend == "nccl")
    assert document.device.name == "A100-SXM4-40GB"
    assert (table.columns["nodes"][0], table.columns["ranks"][0]) == (1, 8)
    assert table.columns["message_bytes"][0] == 4
    assert len(report.refused) == 2


def test_a_log_without_a_reduction_column_is_read() -> None:
    document, report = run("nccl-tests", [str(DATA / "superbenchmark_nccl_alltoall.log")])
    assert {table.family for table in document.tables} == {"all_to_all"}
    assert document.tables[0].counts.read == 29
    assert len(report.refused) == 5


def test_a_log_of_placeholders_gives_no_row_and_never_a_zero() -> None:
    with pytest.raises(ProfileError, match=r"no row could be read: .*placeholder \(XXX\)") as caught:
        run("nccl-tests", [str(DATA / "google_line37.log")])
    assert caught.value.code == "missing_field"


def test_an_elided_log_with_output_prefixes_gives_its_rows() -> None:
    document, report = run("nccl-tests", [str(DATA / "aws_line268.log")])
    assert len(document.tables[0].latency_s) == 6
    assert any("'...'" in line for line in report.notes)
    # What was assumed stays with the profile.
    assert any("2 nodes assumed (8 GPUs a node)" in note for note in document.notes)


def test_a_pointer_a_missing_file_and_no_file_are_refused(tmp_path: Path) -> None:
    pointer = tmp_path / "a.log"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\n", encoding="utf-8")
    with pytest.raises(ProfileError, match="Git LFS pointer"):
        run("nccl-tests", [str(pointer)])
    with pytest.raises(ProfileError, match=r"cannot read b.log: No such file"):
        run("nccl-tests", [str(tmp_path / "b.log")])
    with pytest.raises(ProfileError, match="at least one file"):
        run("nccl-tests", [])


def test_an_unknown_format_lists_the_known() -> None:
    assert formats() == [
        "aiconfigurator", "deepep", "dynamo", "nccl-tests", "nvbandwidth", "rccl-tests", "vidur",
    ]  # fmt: skip
    with pytest.raises(ProfileError, match=r"did you mean 'nccl-tests'\? Known: aiconfigurator"):
        run("nccl", [])


RCCL = """\
# nThread 1 nGpus 4 minBytes 1000000 maxBytes 2000000 step: 2(factor) warmup iters: 5 iters: 20 validation: 1 graph: 0
#
rccl-tests: Version develop:33cc4df
# Using devices
#   Rank  0 Pid  56417 on c42f device  0 [0002:00:00.0] AMD Instinct MI300X VF
#   Rank  1 Pid  56417 on c42f device  1 [0003:00:00.0] AMD Instinct MI300X VF
RCCL version : 2.27.7-develop:29e1567
# Collective test starting: all_gather_perf
c42f:1:1 [0] NCCL INFO Launch mode Parallel
"""


@pytest.mark.parametrize("format_name", ["nccl-tests", "rccl-tests"])
def test_a_log_of_rccl_is_read_as_rccl_whatever_the_format_was_called(tmp_path: Path, format_name: str) -> None:
    path = tmp_path / "run.log"
    path.write_text(RCCL + gathered(1_000_000, 100.0, ranks=2), encoding="utf-8")
    document, report = run(format_name, [str(path)])
    assert {table.backend for table in document.tables} == {"rccl", "rccl_in_place"}
    assert document.device.name == "AMD Instinct MI300X VF"
    assert document.tables[0].kernels == ["RCCL"]
    assert any("it says of itself that it is of rccl" in line for line in report.notes) == (format_name == "nccl-tests")


def test_a_log_that_names_no_library_is_of_the_one_the_format_names(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(HEAD + RANKS.replace("NVIDIA X", "gfx942") + row(1_000_000, 100.0), encoding="utf-8")
    for format_name, backend in (("nccl-tests", "nccl"), ("rccl-tests", "rccl")):
        assert run(format_name, [str(path)]).document.tables[0].backend == backend


def test_only_the_families_asked_for_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    text = log(row(1_000_000, 100.0)) + log(gathered(1_000_000, 70.0, ranks=4)).replace("all_reduce", "all_gather")
    path.write_text(text, encoding="utf-8")
    document, _ = run("nccl-tests", [str(path)], families=["all_gather"])
    assert {table.family for table in document.tables} == {"all_gather"}
    with pytest.raises(ProfileError, match="no row of the families asked for: there are all_gather, all_reduce"):
        run("nccl-tests", [str(path)], families=["broadcast"])
    with pytest.raises(ProfileError, match="family 'gemm' does not occur in this format"):
        run("nccl-tests", [str(path)], families=["gemm"])


REDUCE = (DATA / "superbenchmark_nccl_allreduce.log").read_text(encoding="utf-8")
# Eight ranks on one node, rows of 4 bytes to 8 GiB; busbw / algbw = 2 x 7/8 = 1.75.
LISTED = [line for line in REDUCE.splitlines() if "Rank " in line]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("".join(line for line in REDUCE.splitlines(True) if not any(f"Rank  {at}" in line for at in range(2, 7))), 3),
        (REDUCE.replace("\n".join(LISTED), "\n".join(LISTED * 2)), 16),
        (REDUCE.replace("Rank  0", "Rank  9"), 8),
    ],
    ids=["lines missing", "printed twice", "another number"],
)
def test_a_damaged_device_list_does_not_count(text: str, lines: int) -> None:
    assert text != REDUCE
    found = read_log(text, "x.log", "all_reduce")
    assert {(row.ranks, row.nodes) for row in found.rows} == {(8, 1)}
    assert len(found.rows) == 32
    assert f"x.log: the device list is damaged ({lines} lines, expected ranks 0 to n - 1)" in found.remarks


def test_ranks_that_the_bandwidths_contradict_refuse_all_rows_also_those_too_small_to_tell() -> None:
    cut = "".join(line for line in REDUCE.splitlines(True) if "Rank  6" not in line and "Rank  7" not in line)
    found = read_log(cut, "x.log", "all_reduce")
    assert found.rows == ()
    # 2 x 5/6 = 1.667.
    reason = "busbw is 1.75 times algbw, in all_reduce by 6 ranks it is 1.667: another collective or other ranks"
    assert found.refused[-1] == f"x.log:48: {reason}"
    assert f"x.log:17: as line 48: {reason}" in found.refused


def test_a_damaged_device_list_whose_rows_tell_no_ranks_is_refused() -> None:
    text = HEAD + RANKS.replace("Rank  1", "Rank  2") + "  8 2 float sum -1 10.0 0.00 0.00 0 10.0 0.00 0.00 0\n"
    found = read_log(text, "x.log")
    assert found.rows == ()
    assert "the number of ranks is neither listed (damaged: 4 lines) nor to be told" in found.refused[0]


def test_one_row_that_contradicts_the_others_is_refused_alone() -> None:
    wrong = "  4000000  1000000  float  sum -1  250.00  16.00  20.00  0  250.00  16.00  24.00  0\n"
    found = read_log(log(row(1_000_000, 100.0), row(2_000_000, 150.0), row(3_000_000, 200.0), wrong), "x.log")
    assert len(found.rows) == 3
    assert found.refused[0].startswith("x.log:9: busbw is 1.25 times algbw, in all_reduce by 4 ranks it is 1.5")


UNNAMED = "".join(line for line in log(row(1_000_000, 100.0), row(2_000_000, 150.0)).splitlines(True)[1:])


@pytest.mark.parametrize(
    ("text", "told", "reason"),
    [
        (REDUCE, "all_gather", "the reduction 'sum' is not one of all_gather"),
        (REDUCE, "broadcast", "the reduction 'sum' is not one of broadcast"),
        (REDUCE, "reduce_scatter", "elements of float x 8 ranks that reduce_scatter would move"),
        (REDUCE, "send_recv", "busbw is 1.75 times algbw, in send_recv it is 1"),
        (UNNAMED.replace("sum -1", ""), "all_gather", "elements of float x 4 ranks that all_gather would move"),
        (UNNAMED.replace("sum -1", ""), "broadcast", "busbw is 1.5 times algbw, in broadcast it is 1"),
        (UNNAMED.replace("sum -1", "none 0"), "send_recv", "the root 0 is not one of send_recv"),
        (gathered(1_000_000, 10.0, ranks=4), "all_reduce", "the reduction 'none' is not one of all_reduce"),
        (
            gathered(1_000_000, 10.0, ranks=4, redop=""),
            "all_reduce",
            "62500 elements of float that all_reduce would move",
        ),
        (log(row(1_000_000, 100.0)), "all_gather", "named all_gather, but the log says that it measured all_reduce"),
    ],
)
def test_a_name_in_front_that_the_log_contradicts_is_not_believed(text: str, told: str, reason: str) -> None:
    found = read_log(text, "x.log", told)
    assert found.rows == ()
    assert any(reason in line for line in found.refused)


def test_a_file_name_that_speaks_of_another_collective_than_told_is_remarked() -> None:
    found = read_log(gathered(1_000_000, 10.0, ranks=4), "alltoall.log", "all_gather")
    assert (len(found.rows), found.rows[0].ranks) == (1, 4)
    assert found.remarks[0] == "alltoall.log: read as all_gather as told, though its name speaks of all_to_all"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("  -4096 1024 float sum -1 10.0 0.41 0.61 0 10.0 0.41 0.61 0\n", "as whole numbers, got '-4096 1024'"),
        ("  4096 1024.0 float sum -1 10.0 0.41 0.61 0 10.0 0.41 0.61 0\n", "as whole numbers, got '4096 1024.0'"),
        ("  4e3 1024 complex sum -1 10.0 0.41 0.61 0 10.0 0.41 0.61 0\n", "as whole numbers, got '4e3 1024'"),
        ("{x} 4096 1024 float sum -1 10.0 0.41 0.61 0 10.0 0.41 0.61 0\n", "begin with size and count, got '{x} 4096"),
        ("  4096 1024\n", "expected at least 11 columns, got 2"),
        ("  4096 1024 half sum -1 10.0 0.41 0.61 0 10.0 0.41 0.61 0\n", "4096 bytes are not the 1024 elements of half"),
        ("  4096 1024 double sum -1 10.0 0.41 0.61 0 10.0 0.41 0.61 0\n", "are not the 1024 elements of double"),
        ("  4096 1024 float sum -1 10.0 nan 0.61 0 10.0 0.41 0.61 0\n", "expected bandwidths >= 0 GB/s, got nan"),
        (
            "  4096 1024 float sum -1 10.0 0.41 inf 0 10.0 0.41 0.61 0\n",
            "expected bandwidths >= 0 GB/s, got 0.41 and inf",
        ),
        ("  4096 1024 float sum -1 10.0 N/A 0.61 0 10.0 0.41 0.61 0\n", "expected a number, got 'N/A'"),
        ("  4096 1024 float sum -1 10.0 0.41 0.61 nan 10.0 0.41 0.61 0\n", "wrong results (nan)"),
        ("  4096 1024 float sum -1 0 0 10.0 0.41 0.61 0 10.0 0.41 0.61 0\n", "at most a reduction and a root"),
    ],
)
def test_every_line_that_holds_a_row_is_read_or_listed(line: str, reason: str) -> None:
    found = read_log(log(row(1_000_000, 100.0), row(2_000_000, 150.0), line), "x.log")
    assert len(found.rows) == 2
    assert len(found.refused) == 1
    assert found.refused[0].startswith("x.log:8: ")
    assert reason in found.refused[0]


def test_a_type_that_all_counts_contradict_refuses_the_log() -> None:
    for text, told in ((REDUCE, "all_reduce"), (gathered(1 << 20, 5.0, ranks=4), "all_gather")):
        found = read_log(text.replace(" float ", " half "), "x.log", told)
        assert found.rows == ()


AWS = "aws-samples+awsome-distributed-training/micro-benchmarks_nccl-tests_README.md"
CSCS = "eth-cscs+cscs-docs/docs_software"
GOOGLE = "GoogleCloudPlatform+cluster-toolkit"
# Log (with the collective where it does not say), rows, refused lines, nodes, ranks, and bytes and microseconds out of
# place of the last row, read off the files by eye. Refused are rows of size 0 and placeholders.
REAL = (
    (f"{AWS}.line157.log", "all_reduce", 29, 0, 2, 16, 2147483648, 51406.0),
    (f"{AWS}.line268.log", "all_reduce", 6, 1, 2, 16, 2147483648, 9197.5),
    (f"{CSCS}_communication_nccl.md.line161.log", "all_reduce", 25, 0, 2, 8, 134217728, 1916.4),
    (f"{CSCS}_container-engine_sarus-suite_index.md.line56.log", "all_reduce", 8, 0, 2, 2, 134217728, 5871.07),
    ("superbenchmark/nccl_allgather.log", "all_gather", 29, 5, 1, 8, 8589934592, 33646.0),
    ("superbenchmark/nccl_allreduce.log", "all_reduce", 32, 2, 1, 8, 8589934592, 63896.0),
    ("superbenchmark/nccl_alltoall.log", "all_to_all", 29, 5, 1, 8, 8589934592, 33508.0),
    (f"{GOOGLE}/examples_gke-a3-highgpu_multi-node-test-plan.md.line117.log", "all_gather=",
     10, 0, 2, 16, 536870912, 7098.6),
    (f"{GOOGLE}/examples_gke-a3-megagpu_README.md.line113.log", "all_gather=", 26, 5, 2, 16, 8589934592, 42668.7),
)  # fmt: skip


@pytest.mark.skipif("PLAN_REAL_DATA" not in os.environ, reason="PLAN_REAL_DATA is not set")
@pytest.mark.parametrize(
    ("name", "operation", "rows", "refused", "nodes", "ranks", "size", "time"), REAL, ids=[case[0] for case in REAL]
)
def test_each_real_log_is_read_to_its_last_row(
    name: str, operation: str, rows: int, refused: int, nodes: int, ranks: int, size: int, time: float
) -> None:
    path = Path(os.environ["PLAN_REAL_DATA"]) / "nccl_logs" / name
    named = operation.removesuffix("=") if operation.endswith("=") else None
    found = read_log(path.read_text(encoding="utf-8"), path.name, named)
    assert (len(found.rows), len(found.refused)) == (rows, refused)
    last = found.rows[-1]
    assert (last.operation, last.nodes, last.ranks) == (operation.removesuffix("="), nodes, ranks)
    assert (last.message_bytes, last.out_of_place_us) == (size, time)


@pytest.mark.skipif("PLAN_REAL_DATA" not in os.environ, reason="PLAN_REAL_DATA is not set")
def test_every_real_log_is_read_or_refused_with_a_line_and_a_reason() -> None:
    logs = sorted((Path(os.environ["PLAN_REAL_DATA"]) / "nccl_logs").glob("*/*.log"))
    assert len(logs) >= 10
    read = 0
    for path in logs:
        lines = path.read_text(encoding="utf-8").splitlines()
        found = read_log("\n".join(lines), path.name)
        rows = sum(len(words) > 8 and words[0].isdigit() for words in (line.split(">:")[-1].split() for line in lines))
        rows += sum(line.startswith("0: ") and len(line.split()) > 9 and line.split()[1].isdigit() for line in lines)
        assert len(found.rows) + sum("Avg" not in line for line in found.refused) >= rows
        assert all(line.startswith(f"{path.name}:") and len(line.split(": ", 1)[1]) > 8 for line in found.refused)
        read += bool(found.rows)
    assert read >= 7
