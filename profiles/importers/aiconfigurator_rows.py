"""Which rows of each aiconfigurator table are read, and how their columns become ours.

Units: `latency` is milliseconds in all tables read here (DeepEP tables, in microseconds, are not read);
`message_size` counts elements, not bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profiles.building import RawRows
from profiles.errors import ProfileError
from profiles.importers.parquet import Frame

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

DTYPES = {"bfloat16": "bf16", "half": "fp16", "float16": "fp16", "fp8": "fp8", "int8": "int8"}
ELEMENT_BYTES = {"half": 2, "float16": 2, "bfloat16": 2, "int8": 1, "fp8": 1, "float": 4}
OPERATIONS = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
}
MILLISECONDS = 1e-3


@dataclass(frozen=True)
class Reader:
    """One kind of file: where it lies, its unit of time, and its rows as ours."""

    id: str
    folder: str
    file: str
    read: Callable[[Frame, Floats, str], Iterator[RawRows]]
    seconds_per_unit: float = MILLISECONDS


def _integers(frame: Frame, name: str) -> Ints:
    values = frame.numbers(name)
    if not np.array_equal(values, np.rint(values)):
        raise ProfileError(f"column {name} should hold whole numbers", code="wrong_type", where=name)
    return values.astype(np.int64)


def _kernels(frame: Frame, rows: Bools) -> tuple[str, ...]:
    return tuple(np.unique(frame.text("kernel_source")[rows]).tolist())


def _gemm(frame: Frame, seconds: Floats, source: str) -> Iterator[RawRows]:
    dtypes = frame.text("gemm_dtype")
    for theirs in ("bfloat16", "fp8"):
        rows = dtypes == theirs
        if rows.any():
            columns = {axis: _integers(frame, axis)[rows] for axis in ("m", "n", "k")}
            yield RawRows("gemm", DTYPES[theirs], columns, seconds[rows], source, _kernels(frame, rows))


def _encoder(frame: Frame, seconds: Floats, source: str) -> Iterator[RawRows]:
    batch, heads = _integers(frame, "batch_size"), _integers(frame, "num_heads")
    length, head_dim = _integers(frame, "isl"), _integers(frame, "head_dim")
    rows = frame.text("attn_dtype") == "bfloat16"
    # Heads of different sequences are as independent as heads of one: batch x heads counts, the smallest batch wins.
    _, group = np.unique(np.stack([head_dim, batch * heads, length]), axis=1, return_inverse=True)
    least = np.full(int(group.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, group.reshape(-1), batch)
    rows &= batch == least[group.reshape(-1)]
    columns = {"head_dim": head_dim[rows], "heads": (batch * heads)[rows], "length": length[rows]}
    policy = ("heads counts batch x heads; where several batches give one product, the smallest batch is read",)
    yield RawRows("encoder_attention", "bf16", columns, seconds[rows], source, _kernels(frame, rows), policy=policy)


def _plain_attention(frame: Frame) -> Bools:
    rows = (frame.text("attn_dtype") == "bfloat16") & (frame.text("kv_cache_dtype") == "bfloat16")
    rows &= frame.numbers("num_heads") % np.maximum(frame.numbers("num_key_value_heads"), 1) == 0
    for name, plain in (("window_size", 0), ("beam_width", 1)):
        if name in frame:
            rows &= frame.numbers(name) == plain
    return np.asarray(rows)


def _attention_columns(frame: Frame, rows: Bools) -> dict[str, Ints]:
    heads, kv_heads = _integers(frame, "num_heads")[rows], _integers(frame, "num_key_value_heads")[rows]
    return {
        "head_dim": _integers(frame, "head_dim")[rows],
        "queries_per_kv_head": heads // kv_heads,
        "batch": _integers(frame, "batch_size")[rows],
        "heads": heads,
    }


_PLAIN = ("bf16 attention and cache, no sliding window, no beams",)


def _prefill(frame: Frame, seconds: Floats, source: str) -> Iterator[RawRows]:
    rows = _plain_attention(frame) & (frame.numbers("step") == 0)
    columns = {**_attention_columns(frame, rows), "length": _integers(frame, "isl")[rows]}
    yield RawRows("prefill_attention", "bf16", columns, seconds[rows], source, _kernels(frame, rows), policy=_PLAIN)


def _decode(frame: Frame, seconds: Floats, source: str) -> Iterator[RawRows]:
    rows = _plain_attention(frame) & (frame.numbers("isl") == 1)
    kv_length = (_integers(frame, "step") + _integers(frame, "isl"))[rows]
    columns = {**_attention_columns(frame, rows), "kv_length": kv_length}
    policy = (*_PLAIN, "kv_length counts the tokens before the step and the new one")
    yield RawRows("decode_attention", "bf16", columns, seconds[rows], source, _kernels(frame, rows), policy=policy)


_MOE = {
    "hidden": "hidden_size",
    "ffn": "inter_size",
    "experts": "num_experts",
    "top_k": "topk",
    "tensor_ranks": "moe_tp_size",
    "expert_ranks": "moe_ep_size",
    "tokens": "num_tokens",
}


def _moe(frame: Frame, seconds: Floats, source: str) -> Iterator[RawRows]:
    dtypes, workloads, kernels = frame.text("moe_dtype"), frame.text("distribution"), frame.text("kernel_source")
    gated = np.char.find(kernels, "nongated") < 0
    for theirs in ("bfloat16", "fp8"):
        for workload in np.unique(workloads).tolist():
            rows = (dtypes == theirs) & (workloads == workload) & gated
            if rows.any():
                columns = {axis: _integers(frame, name)[rows] for axis, name in _MOE.items()}
                kernel = _kernels(frame, rows)
                yield RawRows("moe_gemm", DTYPES[theirs], columns, seconds[rows], source, kernel, workload=workload)


def _collective(
    frame: Frame,
    seconds: Floats,
    source: str,
    dtype_column: str,
    backends: npt.NDArray[np.str_],
    dtypes: tuple[str, ...],
) -> Iterator[RawRows]:
    operations, kinds = frame.text("op_name"), frame.text(dtype_column)
    for theirs, ours in OPERATIONS.items():
        for dtype in dtypes:
            for backend in np.unique(backends).tolist():
                rows = (operations == theirs) & (kinds == dtype) & (backends == backend)
                if not rows.any():
                    continue
                ranks = _integers(frame, "num_gpus")[rows]
                message = _integers(frame, "message_size")[rows] * ELEMENT_BYTES[dtype]
                columns = {"nodes": np.ones_like(ranks), "ranks": ranks, "message_bytes": message}
                policy = ("message_size counts elements; message_bytes is the larger buffer of one rank", "one node")
                kernel = _kernels(frame, rows)
                yield RawRows(
                    ours, DTYPES[dtype], columns, seconds[rows], source, kernel, backend=backend, policy=policy
                )


def _nccl(frame: Frame, seconds: Floats, source: str) -> Iterator[RawRows]:
    # int8 rows repeat the same byte counts; half is what training sends.
    yield from _collective(frame, seconds, source, "nccl_dtype", np.full(len(frame), "nccl"), ("half",))


def _custom_all_reduce(frame: Frame, seconds: Floats, source: str) -> Iterator[RawRows]:
    # Two rows a size that differ up to four times are a CUDA graph and an eager launch: only `backend` says which.
    backends = frame.text("backend") if "backend" in frame else frame.text("kernel_source")
    yield from _collective(frame, seconds, source, "allreduce_dtype", np.char.lower(backends), ("bfloat16", "half"))


READERS = (
    Reader("gemm", "gemm", "gemm_perf.parquet", _gemm),
    Reader("encoder_attention", "encoder_attention", "encoder_attention_perf.parquet", _encoder),
    Reader("prefill_attention", "attention", "context_attention_perf.parquet", _prefill),
    Reader("decode_attention", "attention", "generation_attention_perf.parquet", _decode),
    Reader("moe_gemm", "moe", "moe_perf.parquet", _moe),
    Reader("nccl", "comm", "nccl_perf.parquet", _nccl),
    Reader("custom_all_reduce", "comm", "custom_allreduce_perf.parquet", _custom_all_reduce),
)
