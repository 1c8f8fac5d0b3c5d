"""aiconfigurator tables: each trap of the source on a small frame, and the built-in files made again byte for byte."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from profiles.errors import ProfileError, UnknownNameError
from profiles.files import document_bytes
from profiles.importers.aiconfigurator import READERS, import_system, read_device, version_key
from profiles.importers.aiconfigurator_rows import Source
from profiles.importers.parquet import Frame, read_parquet
from profiles.making.building import RawRows

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


def rows(kind: str, columns: Mapping[str, list[object]], source: Source | None = None) -> list[RawRows]:
    reader = next(reader for reader in READERS if reader.id == kind)
    frame = Frame({name: np.array(values) for name, values in columns.items()})
    seconds = np.full(len(frame), reader.seconds_per_unit)
    for name in reader.times:
        seconds = frame.numbers(name) * reader.seconds_per_unit
    return list(reader.read(frame, seconds, source or Source("test")))


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
    half, bytes_ = nccl(["half", "half", "int8"], [256, 512, 1024], [0.010, 0.012, 0.012])
    assert (half.family, half.dtype, bytes_.dtype) == ("all_to_all", "fp16", "int8")
    assert half.columns["message_bytes"].tolist() == [512, 1024]
    assert bytes_.columns["message_bytes"].tolist() == [1024]
    assert half.columns["nodes"].tolist() == [1, 1]


def test_more_ranks_than_a_node_has_gpus_are_several_nodes() -> None:
    # GB200: four GPUs a node, so the sixteen of its all-reduce rows are on four nodes.
    columns = {
        "op_name": ["all_reduce"] * 2, "kernel_source": ["TRTLLM"] * 2, "allreduce_dtype": ["bfloat16"] * 2,
        "num_gpus": [4, 16], "message_size": [128, 128], "latency": [0.02, 0.05],
    }  # fmt: skip
    (raw,) = rows("custom_all_reduce", columns, Source("test", gpus_per_node=4))
    assert raw.columns["nodes"].tolist() == [1, 4]


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


def attention(kv: list[str], kernel: list[str], window: list[int], latency: list[float]) -> list[RawRows]:
    n = len(latency)
    return rows(
        "prefill_attention",
        {
            "batch_size": [1] * n, "num_heads": [8] * n, "num_key_value_heads": [8] * n, "isl": [64] * n,
            "step": [0] * n, "head_dim": [64] * n, "window_size": window, "beam_width": [1] * n,
            "attn_dtype": ["bfloat16"] * n, "kv_cache_dtype": kv, "kernel_source": kernel, "latency": latency,
        },
    )  # fmt: skip


def test_a_cache_of_another_precision_is_another_dtype() -> None:
    plain, short = attention(["bfloat16", "fp8"], ["fa3", "fa3"], [0, 0], [1.0, 0.9])
    assert (plain.dtype, short.dtype) == ("bf16", "bf16_kv_fp8")


def test_one_key_measured_with_two_kernels_is_two_tables_never_a_median() -> None:
    both = attention(["bfloat16"] * 2, ["triton", "trtllm_mha"], [0, 0], [1.0, 4.0])
    assert {raw.backend: raw.seconds.tolist() for raw in both} == {"triton": [1e-3], "trtllm_mha": [4e-3]}


def test_kernels_that_follow_from_the_key_are_one_table() -> None:
    (raw,) = rows(
        "gemm",
        {"gemm_dtype": ["fp8_block"] * 2, "kernel_source": ["deepgemm", "cutlass"], "m": [8, 64], "n": [16] * 2,
         "k": [32] * 2, "latency": [0.5, 0.6]},
    )  # fmt: skip
    assert (raw.dtype, raw.backend, raw.kernels) == ("fp8_block", "", ("cutlass", "deepgemm"))


def test_a_dtype_without_a_name_here_is_refused_and_said() -> None:
    source = Source("test")
    columns = {"gemm_dtype": ["fp3"], "kernel_source": ["x"], "m": [8], "n": [16], "k": [32], "latency": [0.5]}
    assert rows("gemm", columns, source) == []
    assert source.remarks == ["test: 1 rows of dtype fp3 not read: no such dtype here"]


def module(**other: list[object]) -> dict[str, list[object]]:
    columns: dict[str, list[object]] = {
        "op_name": ["dsa_context_module"] * 2, "kernel_source": ["default"] * 2,
        "model": ["deepseek-ai/DeepSeek-V3.2"] * 2, "architecture": ["DeepseekV32ForCausalLM"] * 2,
        "mla_dtype": ["bfloat16"] * 2, "kv_cache_dtype": ["fp8"] * 2, "gemm_type": ["fp8_block"] * 2,
        "num_heads": [16, 16], "batch_size": [1, 1], "isl": [512, 512], "tp_size": [8, 8], "step": [0, 1024],
        "latency": [1.0, 2.0],
    }  # fmt: skip
    return {**columns, **other}


def test_a_module_says_its_model_and_where_its_new_tokens_start() -> None:
    (raw,) = rows("dsa_context_module", module())
    assert (raw.family, raw.dtype, raw.workload) == ("dsa_prefill", "fp8_block_kv_fp8", "deepseek-ai/DeepSeek-V3.2")
    assert raw.columns["first_position"].tolist() == [1, 1025]
    assert raw.columns["length"].tolist() == [512, 512]


def test_modules_that_skip_the_indexer_are_another_workload() -> None:
    both = rows("dsa_context_module", module(op_name=["dsa_context_module", "dsa_context_module_skip_indexer"]))
    assert [raw.workload for raw in both] == [
        "deepseek-ai/DeepSeek-V3.2", "deepseek-ai/DeepSeek-V3.2:skip_indexer",
    ]  # fmt: skip


def test_a_column_that_varies_within_a_key_and_is_not_understood_refuses_its_rows() -> None:
    source = Source("test")
    same_key = module(step=[0, 0], clock_mhz=[1200, 1900])
    assert rows("dsa_context_module", same_key, source) == []
    assert source.remarks == ["test: 2 rows refused: clock_mhz varies and is not understood"]
    # Where it follows from the key it says nothing new.
    assert len(rows("dsa_context_module", module(clock_mhz=[1200, 1900]))) == 1


def test_another_compression_than_the_kind_has_is_refused() -> None:
    source = Source("test")
    (raw,) = rows("dsv4_csa_context_module", module(compress_ratio=[4, 128]), source)
    assert len(raw.seconds) == 1
    assert source.remarks == ["test: 1 rows refused: expected {'compress_ratio': 4}"]


def test_kernels_of_one_linear_attention_layer_are_summed_by_the_user_so_each_is_a_table() -> None:
    both = rows(
        "gdn",
        {
            "phase": ["context"] * 2, "kernel_source": ["causal_conv1d_fn", "chunk_gated_delta_rule"],
            "batch_size": [1] * 2, "seq_len": [64] * 2, "num_tokens": [64] * 2,
            "d_model": [4096] * 2, "d_conv": [4] * 2,
            "num_k_heads": [16] * 2, "head_k_dim": [128] * 2, "num_v_heads": [32] * 2, "head_v_dim": [128] * 2,
            "model_name": ["Qwen/Qwen3.5-9B"] * 2, "latency": [0.1, 0.4],
        },
    )  # fmt: skip
    assert {(raw.backend, raw.workload): raw.seconds.tolist() for raw in both} == {
        ("causal_conv1d_fn", "context"): [0.1e-3],
        ("chunk_gated_delta_rule", "context"): [0.4e-3],
    }


def test_deepep_is_in_microseconds_and_its_number_of_processors_is_another_backend() -> None:
    made = rows(
        "wideep_deepep_normal",
        {
            "kernel_source": ["deepep"] * 2, "node_num": [2, 2], "hidden_size": [7168] * 2, "num_token": [4096] * 2,
            "num_topk": [8] * 2, "num_experts": [256] * 2, "dispatch_sms": [20, 24],
            "dispatch_transmit_us": [900.0, 800.0], "dispatch_notify_us": [100.0, 100.0],
            "combine_sms": [20, 24], "combine_transmit_us": [1900.0, 1800.0],
            "combine_notify_us": [0.0, 0.0],
        },
    )  # fmt: skip
    dispatch = {raw.backend: raw for raw in made if raw.family == "moe_dispatch"}
    assert sorted(dispatch) == ["deepep_normal_20sm", "deepep_normal_24sm"]
    assert dispatch["deepep_normal_20sm"].seconds.tolist() == [pytest.approx(1e-3)]
    assert dispatch["deepep_normal_20sm"].columns["ranks"].tolist() == [16]
    assert {raw.dtype for raw in made if raw.family == "moe_combine"} == {"bf16"}


def test_tensorrt_all_to_all_is_in_milliseconds_and_its_phases_are_families() -> None:
    operations = ["alltoall_prepare", "alltoall_dispatch", "alltoall_combine", "alltoall_combine_low_precision"]
    made = rows(
        "trtllm_alltoall",
        {
            "op_name": operations, "kernel_source": ["NVLinkTwoSided"] * 4, "moe_dtype": ["nvfp4"] * 4,
            "num_tokens": [8192] * 4, "hidden_size": [7168] * 4, "topk": [8] * 4, "num_experts": [256] * 4,
            "moe_ep_size": [8] * 4, "distribution": ["balanced"] * 4, "latency": [0.07, 0.5, 1.6, 1.3],
        },
        Source("test", gpus_per_node=4),
    )  # fmt: skip
    assert [(raw.family, raw.backend) for raw in made] == [
        ("moe_prepare", "nvlinktwosided"),
        ("moe_dispatch", "nvlinktwosided"),
        ("moe_combine", "nvlinktwosided"),
        ("moe_combine", "nvlinktwosided_low_precision"),
    ]
    assert made[1].seconds.tolist() == [0.5e-3]
    assert made[1].columns["nodes"].tolist() == [2]


def test_every_table_of_the_families_is_declared_once() -> None:
    from profiles.families import FAMILIES

    assert len({(reader.folder, reader.file) for reader in READERS}) == len(READERS) == 45
    assert {family for reader in READERS for family in reader.families} <= set(FAMILIES)


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


def test_decode_length_counts_the_new_token_and_windows_are_another_workload() -> None:
    raw, windowed = rows(
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
    assert (raw.workload, windowed.workload) == ("", "window_128")
    assert windowed.seconds.tolist() == [0.5e-3]


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
def test_the_device_is_the_one_that_most_rows_name_and_others_are_said(tmp_path: Path) -> None:
    columns = gemm([1, 2, 4, 8, 16], 1.0)
    columns["device"] = ["a card"] * 2 + ["the card"] * 3
    fake_system(tmp_path, {"gemm/vllm/1/gemm_perf.parquet": columns})
    document, messages = import_system("card", root=tmp_path)
    assert document.device.name == "the card"
    assert "rows of card name several devices: a card (2 rows), the card (3 rows)" in messages


@needs_pyarrow
def test_only_the_families_asked_for_are_read(tmp_path: Path) -> None:
    broken = {"framework": ["X"], "latency": [1.0]}
    fake_system(
        tmp_path, {"gemm/vllm/1/gemm_perf.parquet": gemm([1, 2, 4], 1.0), "moe/vllm/1/moe_perf.parquet": broken}
    )
    document, _ = import_system("card", root=tmp_path, families=["gemm"])
    assert [table.family for table in document.tables] == ["gemm"]
    with pytest.raises(ProfileError, match="card has no rows of mlp: the source holds no measurement of it"):
        import_system("card", root=tmp_path, families=["mlp"])


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
