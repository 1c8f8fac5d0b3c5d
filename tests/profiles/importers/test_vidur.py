"""Vidur's tables: what each operation's shape is, how nodes are told, and each trap of the real files."""

import os
from pathlib import Path

import numpy as np
import pytest

from profiles.document import ProfileDocument
from profiles.errors import ProfileError
from profiles.importers import run
from profiles.profile import Profile

OPERATIONS = (
    "emb", "input_layernorm", "attn_pre_proj", "attn_rope", "attn_post_proj", "post_attention_layernorm", "mlp_up_proj",
    "mlp_act", "mlp_down_proj", "add",
)  # fmt: skip
# Llama-2-70b: 64 heads of 128, 8 KV heads, hidden 8192, feed-forward 28672, gated.
LLAMA = {
    "n_head": "64", "n_kv_head": "8", "n_embd": "8192", "n_expanded_embd": "28672", "vocab_size": "32768",
    "use_gated_mlp": "True",
}  # fmt: skip


def mlp(lines: list[dict[str, str]], operations: tuple[str, ...] = OPERATIONS) -> str:
    times = [f"time_stats.{name}.{kind}" for name in operations for kind in ("min", "median")]
    header = [*times, *LLAMA, "num_tokens", "num_tensor_parallel_workers"]
    rows = []
    for line in lines:
        given = {**dict.fromkeys(times, "0.5"), **LLAMA, "num_tokens": "4096", "num_tensor_parallel_workers": "1"}
        rows.append(",".join({**given, **line}[name] for name in header))
    return "\n".join([",".join(header), *rows, ""])


def collective(rows: list[tuple[str, int, int, int, float]]) -> str:
    """(collective, ranks, devices per node, bytes, ms median)."""
    names = {row[0] for row in rows}
    header = ["", *(f"time_stats.{name}.median" for name in sorted(names)), "rank", "num_workers", "size", "collective"]
    out = [",".join([*header, "devices_per_node", "max_devices_per_node"])]
    for at, (name, ranks, devices, size, time) in enumerate(rows):
        times = [str(time) if other == name else "" for other in sorted(names)]
        out.append(",".join([str(at), *times, "0", str(ranks), str(size), name, str(devices), "8"]))
    return "\n".join([*out, ""])


def read(tmp_path: Path, text: str, name: str = "mlp.csv") -> ProfileDocument:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return run("vidur", [str(tmp_path / name)]).document


def shapes(document: ProfileDocument) -> set[tuple[int, int, int]]:
    table = next(table for table in document.tables if table.family == "gemm")
    return set(zip(table.columns["m"], table.columns["n"], table.columns["k"], strict=True))


def test_products_have_the_shape_of_one_rank(tmp_path: Path) -> None:
    document = read(tmp_path, mlp([{}, {"num_tensor_parallel_workers": "4"}]))
    # One rank: q, k, v (64 + 2 x 8) x 128 = 10240 wide; output 8192 x 8192; gate and up 2 x 28672; down 28672 deep.
    # Four ranks: the parallel side is a quarter.
    assert shapes(document) == {
        (4096, 10240, 8192), (4096, 8192, 8192), (4096, 57344, 8192), (4096, 8192, 28672),
        (4096, 2560, 8192), (4096, 8192, 2048), (4096, 14336, 8192), (4096, 8192, 7168),
    }  # fmt: skip


def test_without_a_gate_the_first_product_is_half_as_wide(tmp_path: Path) -> None:
    assert (4096, 28672, 8192) in shapes(read(tmp_path, mlp([{"use_gated_mlp": "False"}])))


def test_milliseconds_become_seconds_and_the_median_is_read_not_the_minimum(tmp_path: Path) -> None:
    times = {"time_stats.mlp_up_proj.min": "14.3", "time_stats.mlp_up_proj.median": "15.9405"}
    document = read(tmp_path, mlp([times]))
    profile = Profile(document, "")
    assert profile.gemm(4096, 57344, 8192, dtype="fp16").seconds == 15.9405e-3


def test_elementwise_operations_are_told_apart_by_workload_with_the_width_of_one_rank(tmp_path: Path) -> None:
    document = read(tmp_path, mlp([{"num_tensor_parallel_workers": "4"}]))
    widths = {t.workload: t.columns["width"] for t in document.tables if t.family == "elementwise"}
    # Rope turns the (64 + 8) / 4 heads of 128 of one rank; the gated activation leaves 28672 / 4.
    assert widths == {
        "embedding": [8192], "input_layernorm": [8192], "post_attention_layernorm": [8192], "rope": [2304],
        "gated_activation": [7168], "add": [8192],
    }  # fmt: skip


def test_a_block_without_a_second_norm_adds_three_tensors(tmp_path: Path) -> None:
    fewer = tuple(name for name in OPERATIONS if name != "post_attention_layernorm")
    workloads = {table.workload for table in read(tmp_path, mlp([{}], fewer)).tables}
    assert "add_of_three" in workloads
    assert "add" not in workloads


def test_two_ranks_on_one_node_and_on_two_are_different_keys(tmp_path: Path) -> None:
    size = 64 << 20
    text = collective([("send_recv", 2, 2, size, 0.3), ("send_recv", 2, 1, size, 8.1)])
    profile = Profile(read(tmp_path, text, "send_recv.csv"), "")
    assert profile.collective("send_recv", size, 2).seconds == 0.3e-3
    assert profile.collective("send_recv", size, 2, nodes=2).seconds == 8.1e-3


def test_a_gathering_collective_counts_its_larger_buffer(tmp_path: Path) -> None:
    document = read(tmp_path, collective([("all_gather", 4, 4, 1024, 0.1)]), "all_gather.csv")
    assert document.tables[0].columns["message_bytes"] == [4096]


def test_unsorted_and_repeated_rows_are_sorted_and_merged(tmp_path: Path) -> None:
    rows = [("all_reduce", 4, 4, size, time) for size, time in ((4096, 0.4), (1024, 0.1), (4096, 0.2), (2048, 0.2))]
    (table,) = read(tmp_path, collective(rows), "all_reduce.csv").tables
    assert table.columns["message_bytes"] == [1024, 2048, 4096]
    assert table.latency_s == pytest.approx([1e-4, 2e-4, 3e-4])
    assert table.counts.repeats_merged == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"num_tokens": "0"}, "expected num_tokens as a whole number >= 1, got '0'"),
        ({"num_tokens": "4e3"}, "expected num_tokens as a whole number >= 1, got '4e3'"),
        ({"num_tensor_parallel_workers": "3"}, "n_head 64 does not divide into 3 ranks"),
        ({"num_tensor_parallel_workers": "16"}, "n_kv_head 8 does not divide into 16 ranks"),
        ({"time_stats.add.median": "XXX"}, "expected the median of add as milliseconds > 0, got 'XXX'"),
        ({"time_stats.add.median": "nan"}, "milliseconds > 0, got 'nan'"),
        ({"time_stats.add.median": "0.0"}, "milliseconds > 0, got '0.0'"),
        ({"use_gated_mlp": "1"}, "expected use_gated_mlp as True or False"),
    ],
)
def test_a_bad_line_is_refused_with_its_number_and_the_good_ones_stay(
    tmp_path: Path, line: dict[str, str], reason: str
) -> None:
    path = tmp_path / "mlp.csv"
    path.write_text(mlp([{}, line, {"num_tokens": "8"}]), encoding="utf-8")
    document, report = run("vidur", [str(path)])
    assert len(document.tables[0].latency_s) == 2
    assert len(report.refused) == 1
    assert report.refused[0].startswith("mlp.csv:3: ")
    assert reason in report.refused[0]


def test_a_cut_line_and_a_collective_that_is_not_one_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "all_reduce.csv"
    text = collective([("all_reduce", 4, 4, 1024, 0.1), ("all_reduce", 6, 4, 1024, 0.1)])
    path.write_text(text + "3,0.1,0\n3,0.1,0,4,1024,scan,4,8\n", encoding="utf-8")
    _, report = run("vidur", [str(path)])
    assert [line.split(": ", 1)[1][:45] for line in report.refused] == [
        "num_workers 6 does not divide into 4 devices ",
        "expected 8 cells as in the header, got 3",
        "expected a collective among all_reduce, all_g",
    ]


@pytest.mark.parametrize("most", ["0", "-8", "", "many", "2.5"])
def test_a_line_is_refused_or_read_and_never_both(tmp_path: Path, most: str) -> None:
    path = tmp_path / "all_reduce.csv"
    text = collective([("all_reduce", 4, 4, 1024, 0.1), ("all_reduce", 4, 4, 2048, 0.2)])
    assert text.endswith(",8\n")
    path.write_text(text[:-2] + most + "\n", encoding="utf-8")
    document, report = run("vidur", [str(path)])
    assert document.tables[0].columns["message_bytes"] == [1024]
    assert document.device.gpus_per_node == 8
    assert report.refused == (f"all_reduce.csv:3: expected max_devices_per_node as a whole number >= 1, got {most!r}",)


def test_whole_numbers_written_with_a_point_are_read(tmp_path: Path) -> None:
    text = collective([("all_reduce", 4, 4, 1024, 0.1)]).replace(",8\n", ",8.0\n").replace(",1024,", ",1024.0,")
    document = read(tmp_path, text, "all_reduce.csv")
    assert (document.device.gpus_per_node, document.tables[0].columns["message_bytes"]) == (8, [1024])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("all_reduce", 1, 1, 2048, 0.2), "a collective of one rank moves nothing"),
        (("all_reduce", 16, 16, 2048, 0.2), "devices_per_node 16 is above max_devices_per_node 8"),
    ],
)
def test_collectives_that_cannot_be_are_refused(
    tmp_path: Path, row: tuple[str, int, int, int, float], reason: str
) -> None:
    path = tmp_path / "all_reduce.csv"
    path.write_text(collective([("all_reduce", 4, 4, 1024, 0.1), row]), encoding="utf-8")
    assert run("vidur", [str(path)]).report.refused == (f"all_reduce.csv:3: {reason}",)


@pytest.mark.parametrize("low", ["0.6", "nan", "XXX"])
def test_a_median_outside_its_own_minimum_and_maximum_is_refused(tmp_path: Path, low: str) -> None:
    path = tmp_path / "mlp.csv"
    path.write_text(mlp([{}, {"time_stats.add.min": low}]), encoding="utf-8")
    (line,) = run("vidur", [str(path)]).report.refused
    assert line.startswith("mlp.csv:3: the median of add, 0.5 ms, is not within its own")
    # The same column as a maximum.
    path.write_text(mlp([{}, {"time_stats.add.min": "0.4"}]).replace("add.min", "add.max"), encoding="utf-8")
    assert len(run("vidur", [str(path)]).report.refused) == 1


def test_another_table_is_refused_by_the_column_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "attention.csv"
    path.write_text("time_stats.attn_prefill.median,n_embd,n_q_head\n1,2,3\n", encoding="utf-8")
    with pytest.raises(ProfileError, match=r"none of Vidur's tables that are read .*: it lacks the column n_head"):
        run("vidur", [str(path)])


def test_tables_from_folders_of_two_devices_are_never_one_profile(tmp_path: Path) -> None:
    places = [tmp_path / "compute/a100/m/mlp.csv", tmp_path / "network/h100_dgx/all_reduce.csv"]
    for place, text in zip(places, (mlp([{}]), collective([("all_reduce", 4, 4, 1024, 0.1)])), strict=True):
        place.parent.mkdir(parents=True)
        place.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError, match=r"several devices \(a100, h100\): import one device at a time"):
        run("vidur", [str(place) for place in places])
    document, _ = run("vidur", [str(places[0])])
    assert (document.device.name, document.name) == ("a100", "vidur-a100")


PEAK = {"a100": 312e12, "h100": 989e12}


@pytest.mark.skipif("PLAN_REAL_DATA" not in os.environ, reason="PLAN_REAL_DATA is not set")
@pytest.mark.parametrize(
    ("device", "path"), [("a100", "a100/meta-llama/Llama-2-70b-hf/mlp.csv"), ("h100", "h100/microsoft/phi-2/mlp.csv")]
)
def test_no_real_product_is_faster_than_its_device_and_the_large_ones_come_near(device: str, path: str) -> None:
    # Dense fp16 peaks by the vendor: 312 and 989 TFLOP/s. A wrong shape or unit would break one side or the other.
    root = Path(os.environ["PLAN_REAL_DATA"]) / "vidur/data/profiling/compute"
    document, report = run("vidur", [str(root / path)])
    assert report.refused == ()
    table = next(table for table in document.tables if table.family == "gemm").cost_table()
    columns = {axis: column.astype(np.float64) for axis, column in table.columns.items()}
    share = 2 * columns["m"] * columns["n"] * columns["k"] / table.seconds / PEAK[device]
    assert share.max() < 1
    assert share[columns["m"] >= 2048].max() > 0.6


@pytest.mark.skipif("PLAN_REAL_DATA" not in os.environ, reason="PLAN_REAL_DATA is not set")
def test_the_real_tables_say_27_times_for_two_nodes_and_keep_to_the_links() -> None:
    folder = Path(os.environ["PLAN_REAL_DATA"]) / "vidur/data/profiling/network/a100_dgx"
    document, report = run("vidur", [str(folder / name) for name in ("all_reduce.csv", "send_recv.csv")])
    assert report.refused == ()
    profile, size = Profile(document, ""), 64 << 20
    one, two = (float(profile.collective("all_reduce", size, 2, nodes=nodes).seconds) for nodes in (1, 2))
    assert 20 < two / one < 35
    # Inside the node a rank sends the message once at most as fast as its NVLink: 300 GB/s each way on A100.
    assert size / one < 300e9
