"""aiconfigurator's tables of products, attention, experts and collectives.

`latency` is milliseconds; `message_size` counts elements, not bytes; heads are those of one rank.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profiles.importers.aiconfigurator_names import DTYPES, ELEMENT_BYTES, OPERATIONS, own_dtypes, paired
from profiles.importers.aiconfigurator_rows import (
    Bools,
    Floats,
    Ints,
    Reader,
    Source,
    Texts,
    by_kernel,
    groups,
    kernels,
    known_dtypes,
)
from profiles.importers.parquet import Frame
from profiles.making.building import RawRows

MOE = {
    "hidden": "hidden_size",
    "ffn": "inter_size",
    "experts": "num_experts",
    "top_k": "topk",
    "tensor_ranks": "moe_tp_size",
    "expert_ranks": "moe_ep_size",
    "tokens": "num_tokens",
}


def _gemm(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    columns = {axis: frame.integers(axis) for axis in ("m", "n", "k")}
    for dtype, rows in known_dtypes(own_dtypes(frame.text("gemm_dtype")), source):
        for backend, part in by_kernel(frame, columns.values(), rows):
            axes = {axis: column[part] for axis, column in columns.items()}
            yield RawRows("gemm", dtype, axes, seconds[part], source.id, kernels(frame, part), backend=backend)


def _encoder(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    batch, heads = frame.integers("batch_size"), frame.integers("num_heads")
    length, head_dim = frame.integers("isl"), frame.integers("head_dim")
    rows = frame.text("attn_dtype") == "bfloat16"
    # Heads of different sequences are as independent as heads of one: batch x heads counts, the smallest batch wins.
    _, group = np.unique(np.stack([head_dim, batch * heads, length]), axis=1, return_inverse=True)
    least = np.full(int(group.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, group.reshape(-1), batch)
    rows &= batch == least[group.reshape(-1)]
    columns = {"head_dim": head_dim[rows], "heads": (batch * heads)[rows], "length": length[rows]}
    policy = ("heads counts batch x heads; where several batches give one product, the smallest batch is read",)
    yield RawRows("encoder_attention", "bf16", columns, seconds[rows], source.id, kernels(frame, rows), policy=policy)


def _attention(
    family: str, along: str, length: Ints, plain: Bools, frame: Frame, seconds: Floats, source: Source, more: str = ""
) -> Iterator[RawRows]:
    heads, kv_heads = frame.integers("num_heads"), np.maximum(frame.integers("num_key_value_heads"), 1)
    window = frame.integers("window_size") if "window_size" in frame else np.zeros_like(heads)
    usable = plain & (heads % kv_heads == 0)
    if "beam_width" in frame:
        usable &= frame.numbers("beam_width") == 1
    source.refuse(int((~usable).sum()), "not read: beams, a prefix, or heads that KV heads do not divide")
    columns = {
        "head_dim": frame.integers("head_dim"),
        "queries_per_kv_head": heads // kv_heads,
        "batch": frame.integers("batch_size"),
        "heads": heads,
        along: length,
    }
    for dtype, own in known_dtypes(paired(frame.text("attn_dtype"), frame.text("kv_cache_dtype")), source):
        for tokens in np.unique(window[own & usable]).tolist():
            sliding = f"sliding window of {tokens} tokens" if tokens else "no sliding window"
            policy = (f"{_numbers(dtype)}, {sliding}, no beams", *([more] if more else []))
            for backend, rows in by_kernel(frame, columns.values(), own & usable & (window == tokens)):
                axes = {axis: column[rows] for axis, column in columns.items()}
                yield RawRows(
                    family, dtype, axes, seconds[rows], source.id, kernels(frame, rows), backend=backend,
                    workload=f"window_{tokens}" if tokens else "", policy=policy,
                )  # fmt: skip


def _numbers(dtype: str) -> str:
    attention, _, cache = dtype.partition("_kv_")
    return f"{attention} attention, {cache} cache" if cache else f"{dtype} attention and cache"


def _prefill(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    plain = frame.numbers("step") == 0
    yield from _attention("prefill_attention", "length", frame.integers("isl"), plain, frame, seconds, source)


def _decode(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    length = frame.integers("step") + frame.integers("isl")
    more = "kv_length counts the tokens before the step and the new one"
    plain = frame.numbers("isl") == 1
    yield from _attention("decode_attention", "kv_length", length, plain, frame, seconds, source, more)


def _moe(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    columns = {axis: frame.integers(name) for axis, name in MOE.items()}
    plain = np.char.find(frame.text("kernel_source"), "nongated") < 0
    for dtype, own in known_dtypes(own_dtypes(frame.text("moe_dtype")), source):
        for workload, rows in groups(frame.text("distribution"), own):
            for gated in (True, False):
                policy = () if gated else ("two products an expert instead of three: no gate",)
                for kernel, part in by_kernel(frame, columns.values(), rows & (plain == gated)):
                    axes = {axis: column[part] for axis, column in columns.items()}
                    backend = kernel or ("" if gated else "nongated")
                    yield RawRows(
                        "moe_gemm", dtype, axes, seconds[part], source.id, kernels(frame, part),
                        backend=backend, workload=workload, policy=policy,
                    )  # fmt: skip


def _collective(
    frame: Frame, seconds: Floats, source: Source, dtype_column: str, backends: Texts, dtypes: tuple[str, ...]
) -> Iterator[RawRows]:
    operations, kinds = frame.text("op_name"), frame.text(dtype_column)
    wanted = np.isin(kinds, dtypes) & np.isin(operations, list(OPERATIONS))
    source.refuse(int((~wanted).sum()), "of another operation or dtype not read")
    for theirs, ours in OPERATIONS.items():
        for dtype in dtypes:
            for backend, rows in groups(backends, (operations == theirs) & (kinds == dtype)):
                ranks = frame.integers("num_gpus")[rows]
                nodes = -(-ranks // source.gpus_per_node)
                message = frame.integers("message_size")[rows] * ELEMENT_BYTES[dtype]
                columns = {"nodes": nodes, "ranks": ranks, "message_bytes": message}
                inside = "one node" if (nodes == 1).all() else f"nodes of {source.gpus_per_node} GPUs"
                policy = ("message_size counts elements; message_bytes is the larger buffer of one rank", inside)
                yield RawRows(
                    ours, DTYPES[dtype], columns, seconds[rows], source.id, kernels(frame, rows), backend=backend,
                    policy=policy,
                )  # fmt: skip


def _nccl(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    backends = np.char.lower(frame.text("kernel_source"))
    yield from _collective(frame, seconds, source, "nccl_dtype", backends, ("half", "int8"))


def _custom_all_reduce(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    # Two rows a size that differ up to four times are a CUDA graph and an eager launch: only `backend` says which.
    backends = frame.text("backend") if "backend" in frame else frame.text("kernel_source")
    yield from _collective(frame, seconds, source, "allreduce_dtype", np.char.lower(backends), ("bfloat16", "half"))


_COLLECTIVES = tuple(OPERATIONS.values())
READERS = (
    Reader("gemm", "gemm", "gemm_perf.parquet", ("gemm",), _gemm),
    Reader(
        "encoder_attention", "encoder_attention", "encoder_attention_perf.parquet", ("encoder_attention",), _encoder
    ),
    Reader("prefill_attention", "attention", "context_attention_perf.parquet", ("prefill_attention",), _prefill),
    Reader("decode_attention", "attention", "generation_attention_perf.parquet", ("decode_attention",), _decode),
    Reader("moe_gemm", "moe", "moe_perf.parquet", ("moe_gemm",), _moe),
    Reader("nccl", "comm", "nccl_perf.parquet", _COLLECTIVES, _nccl),
    Reader("oneccl", "comm", "oneccl_perf.parquet", _COLLECTIVES, _nccl),
    Reader("custom_all_reduce", "comm", "custom_allreduce_perf.parquet", ("all_reduce",), _custom_all_reduce),
)
