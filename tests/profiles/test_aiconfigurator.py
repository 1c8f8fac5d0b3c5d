"""aiconfigurator tables: each trap of the source on a small frame, and the built-in files made again byte for byte."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from profiles.building import RawRows
from profiles.errors import ProfileError, UnknownNameError
from profiles.files import document_bytes
from profiles.importers.aiconfigurator import import_system, read_device, version_key
from profiles.importers.aiconfigurator_rows import READERS
from profiles.importers.parquet import Frame, read_parquet

TABLES = Path(__file__).parents[2] / "profiles" / "tables"
needs_pyarrow = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")
needs_source = pytest.mark.skipif(
    importlib.util.find_spec("aiconfigurator_core") is None or importlib.util.find_spec("pyarrow") is None,
    reason="the aiconfigurator extra is not installed",
)
YAML = """
gpu: {mem_bw: 1000, mem_bw_empirical_scaling_factor: 0.8, mem_empirical_constant_latency: 0.000003,
      mem_capacity: 2000, bfloat16_tc_flops: 1000000, fp8_tc_flops: 2000000}
node: {num_gpus_per_node: 8, inter_node_bw: 50, intra_node_bw: 450, p2p_latency: 0.00001}
misc: {other_mem: 7}
"""


def rows(kind: str, columns: Mapping[str, list[object]]) -> list[RawRows]:
    reader = next(reader for reader in READERS if reader.id == kind)
    frame = Frame({name: np.array(values) for name, values in columns.items()})
    return list(reader.read(frame, frame.numbers("latency") * reader.seconds_per_unit, "test"))


def test_milliseconds_become_seconds() -> None:
    (raw,) = rows(
        "gemm",
        {"gemm_dtype": ["bfloat16"], "kernel_source": ["torch"], "m": [8], "n": [16], "k": [32], "latency": [0.5]},
    )
    assert raw.seconds.tolist() == [0.5e-3]
    assert {axis: column.tolist() for axis, column in raw.columns.items()} == {"m": [8], "n": [16], "k": [32]}
    assert raw.kernels == ("torch",)


def nccl(dtype: list[str], size: list[int], latency: list[float]) -> list[RawRows]:
    count = len(dtype)
    return rows(
        "nccl",
        {
            "op_name": ["alltoall"] * count, "kernel_source": ["NCCL"] * count, "nccl_dtype": dtype,
            "num_gpus": [8] * count, "message_size": size, "latency": latency,
        },
    )  # fmt: skip


def test_message_size_counts_elements_so_half_has_two_bytes_each() -> None:
    # The timing ratio gives it away: 512 elements of half take as long as 1024 of int8.
    (raw,) = nccl(["half", "half", "int8"], [256, 512, 1024], [0.010, 0.012, 0.012])
    assert raw.family == "all_to_all"
    assert raw.columns["message_bytes"].tolist() == [512, 1024]
    assert raw.columns["nodes"].tolist() == [1, 1]


def test_graph_and_eager_rows_are_told_apart_by_backend_alone() -> None:
    both = rows(
        "custom_all_reduce",
        {
            "op_name": ["all_reduce"] * 2, "kernel_source": ["vLLM_custom"] * 2, "allreduce_dtype": ["bfloat16"] * 2,
            "num_gpus": [8, 8], "message_size": [128, 128], "latency": [0.02, 0.005],
            "backend": ["vllm_eager", "vLLM_graph"],
        },
    )  # fmt: skip
    assert {raw.backend: raw.seconds.tolist() for raw in both} == {"vllm_eager": [2e-5], "vllm_graph": [5e-6]}


def test_rows_without_a_backend_column_are_told_apart_by_kernel() -> None:
    columns = {
        "op_name": ["all_reduce"], "kernel_source": ["TRTLLM"], "allreduce_dtype": ["bfloat16"],
        "num_gpus": [8], "message_size": [128], "latency": [0.02],
    }  # fmt: skip
    assert [raw.backend for raw in rows("custom_all_reduce", columns)] == ["trtllm"]


def test_the_smallest_batch_speaks_for_a_product_of_batch_and_heads() -> None:
    (raw,) = rows(
        "encoder_attention",
        {
            "batch_size": [1, 2, 4, 2], "num_heads": [16, 8, 4, 16], "isl": [100] * 4, "head_dim": [64] * 4,
            "attn_dtype": ["bfloat16"] * 4, "kernel_source": ["fa3"] * 4, "latency": [1.0, 1.1, 1.2, 2.0],
        },
    )  # fmt: skip
    assert raw.columns["heads"].tolist() == [16, 32]
    assert raw.seconds.tolist() == [1e-3, 2e-3]


def test_decode_length_counts_the_new_token_and_windows_are_left_out() -> None:
    (raw,) = rows(
        "decode_attention",
        {
            "batch_size": [1, 1], "num_heads": [8, 8], "num_key_value_heads": [2, 2], "isl": [1, 1],
            "step": [1023, 1023],
            "head_dim": [128, 128], "window_size": [0, 128], "beam_width": [1, 1], "attn_dtype": ["bfloat16"] * 2,
            "kv_cache_dtype": ["bfloat16"] * 2, "kernel_source": ["fa3"] * 2, "latency": [1.0, 0.5],
        },
    )  # fmt: skip
    assert raw.columns["kv_length"].tolist() == [1024]
    assert raw.columns["queries_per_kv_head"].tolist() == [4]


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ProfileError, match="column n is missing") as caught:
        rows("gemm", {"gemm_dtype": ["bfloat16"], "kernel_source": ["x"], "m": [8], "k": [32], "latency": [0.5]})
    assert caught.value.code == "missing_field"


def test_empirical_factors_are_never_read_as_measurements(tmp_path: Path) -> None:
    (tmp_path / "card.yaml").write_text(YAML, encoding="utf-8")
    device = read_device(tmp_path / "card.yaml")
    assert device.memory_bandwidth_bytes_per_s == 1000
    assert device.intra_node_bandwidth_bytes_per_s == 450
    assert device.peak_flop_per_s == {"bf16": 1e6, "fp16": 1e6, "fp8": 2e6}
    assert "0.8" not in device.model_dump_json()


def test_versions_sort_by_number_and_candidates_before_releases() -> None:
    versions = ["1.3.0", "0.5.14", "1.3.0rc20", "0.5.9", "0.5.6.post2", "1.3.0rc3"]
    assert sorted(versions, key=version_key) == ["0.5.6.post2", "0.5.9", "0.5.14", "1.3.0rc3", "1.3.0rc20", "1.3.0"]


def fake_system(root: Path, tables: Mapping[str, Mapping[str, list[object]]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet as pq

    (root / "card.yaml").write_text(YAML, encoding="utf-8")
    for place, columns in tables.items():
        path = root / "data" / "card" / place
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table(dict(columns)), path)


def gemm(ms: list[int], scale: float) -> dict[str, list[object]]:
    count = len(ms)
    return {
        "framework": ["X"] * count, "version": ["9"] * count, "device": ["card"] * count,
        "kernel_source": ["k"] * count, "gemm_dtype": ["bfloat16"] * count,
        "m": list(ms), "n": [64] * count, "k": [64] * count, "latency": [scale * m for m in ms],
    }  # fmt: skip


@needs_pyarrow
def test_the_source_measured_up_to_the_largest_size_is_chosen(tmp_path: Path) -> None:
    wide, narrow = gemm([1, 2, 4, 8], 1.0), gemm([1, 2, 4], 2.0)
    fake_system(tmp_path, {"gemm/sglang/1/gemm_perf.parquet": wide, "gemm/vllm/1/gemm_perf.parquet": narrow})
    document, _ = import_system("card", root=tmp_path)
    assert document.tables[0].provenance == "gemm:sglang:1"


@needs_pyarrow
def test_at_equal_range_one_source_is_chosen_by_framework_then_version(tmp_path: Path) -> None:
    fake_system(
        tmp_path,
        {
            "gemm/sglang/2.0/gemm_perf.parquet": gemm([1, 2, 4, 8], 1.0),
            "gemm/vllm/1.0/gemm_perf.parquet": gemm([1, 2, 4, 8], 2.0),
            "gemm/vllm/1.10/gemm_perf.parquet": gemm([1, 2, 4, 8], 3.0),
            "gemm/trtllm/9.0/gemm_perf.parquet": gemm([1, 2, 4], 4.0),
        },
    )
    document, messages = import_system("card", root=tmp_path)
    assert document.tables[0].latency_s == [3e-3, 6e-3, 12e-3, 24e-3]
    assert document.tables[0].provenance == "gemm:vllm:1.10"
    assert any("not used: gemm:sglang:2.0" in line for line in messages)
    assert "framework X; version 9" in document.provenance[0].note


@needs_pyarrow
def test_a_few_rows_of_a_wider_range_do_not_outweigh_a_whole_table(tmp_path: Path) -> None:
    many, few = gemm(list(range(1, 41)), 1.0), gemm([1, 2, 99], 2.0)
    fake_system(tmp_path, {"gemm/sglang/1/gemm_perf.parquet": many, "gemm/vllm/1/gemm_perf.parquet": few})
    document, _ = import_system("card", root=tmp_path)
    assert document.tables[0].provenance == "gemm:sglang:1"


@needs_pyarrow
def test_rows_without_a_usable_latency_are_refused_and_counted(tmp_path: Path) -> None:
    columns = gemm([1, 2, 4, 8, 16], 1.0)
    columns["latency"] = [1.0, float("nan"), 4.0, -8.0, 16.0]
    fake_system(tmp_path, {"gemm/vllm/1/gemm_perf.parquet": columns})
    document, messages = import_system("card", root=tmp_path)
    assert document.tables[0].columns["m"] == [1, 4, 16]
    assert any("2 rows without a positive finite latency refused" in line for line in messages)


@needs_pyarrow
def test_a_pointer_or_a_broken_parquet_file_is_refused_by_name(tmp_path: Path) -> None:
    pointer, broken = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pointer.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    broken.write_bytes(b"PAR1 nonsense")
    with pytest.raises(ProfileError, match=r"a.parquet is a Git LFS pointer"):
        read_parquet(pointer)
    with pytest.raises(ProfileError, match=r"b.parquet is not a readable parquet file"):
        read_parquet(broken)


@needs_pyarrow
def test_an_unknown_system_lists_the_known(tmp_path: Path) -> None:
    fake_system(tmp_path, {"gemm/vllm/1/gemm_perf.parquet": gemm([1, 2, 4], 1.0)})
    with pytest.raises(UnknownNameError, match=r"did you mean 'card'\? Known: card"):
        import_system("cards", root=tmp_path)


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ProfileError, match=r"pip install 'girih\[aiconfigurator\]'"):
        import_system("h200_sxm")


@needs_source
def test_the_smallest_built_in_profile_is_made_again_byte_for_byte() -> None:
    from profiles.builtin import REDUCTION

    document, _ = import_system("a100_sxm", reduction=REDUCTION)
    assert document_bytes(document) == (TABLES / "a100-sxm.json").read_bytes()
