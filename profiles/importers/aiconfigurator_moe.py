"""aiconfigurator's tables of mixture-of-experts communication and of experts over many ranks.

DeepEP tables are in microseconds, TensorRT-LLM's all-to-all in milliseconds. Tokens of an exchange are those of one
rank; tokens of expert products are those of the whole expert group. DeepEP quantises what it dispatches to fp8 and
combines in bf16: the low-latency rows state the bandwidth of exactly these bytes, and in bf16 the normal rows of
H100 would send more than its NVLink carries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from profiles.importers.aiconfigurator_kernels import MOE
from profiles.importers.aiconfigurator_names import own_dtypes
from profiles.importers.aiconfigurator_rows import (
    MICROSECONDS,
    Bools,
    Floats,
    Ints,
    Reader,
    Source,
    Texts,
    groups,
    kernels,
    known_dtypes,
)
from profiles.importers.parquet import Frame
from profiles.making.building import RawRows

_EXCHANGES = ("moe_dispatch", "moe_combine")
_OF_ONE_RANK = "tokens are those of one rank"


def _routed(frame: Frame, ranks: Ints, nodes: Ints, top_k: str, tokens: str) -> dict[str, Ints]:
    return {
        "nodes": nodes,
        "hidden": frame.integers("hidden_size"),
        "experts": frame.integers("num_experts"),
        "top_k": frame.integers(top_k),
        "ranks": ranks,
        "tokens": frame.integers(tokens),
    }


def _table(
    family: str, dtype: str, columns: dict[str, Ints], seconds: Floats, rows: Bools, frame: Frame, source: Source,
    backend: str, workload: str = "", policy: tuple[str, ...] = (),
) -> Iterator[RawRows]:  # fmt: skip
    usable = np.isfinite(seconds) & (seconds > 0)
    source.refuse(int((rows & ~usable).sum()), "without a positive finite latency refused")
    rows = rows & usable
    if rows.any():
        own = {axis: column[rows] for axis, column in columns.items()}
        yield RawRows(
            family, dtype, own, seconds[rows], source.id, kernels(frame, rows), backend=backend, workload=workload,
            policy=policy,
        )  # fmt: skip


def _deepep(frame: Frame, source: Source) -> dict[str, Ints]:
    nodes = frame.integers("node_num")
    return _routed(frame, nodes * source.gpus_per_node, nodes, "num_topk", "num_token")


def _deepep_normal(frame: Frame, _: Floats, source: Source) -> Iterator[RawRows]:
    columns = _deepep(frame, source)
    policy = (_OF_ONE_RANK, "transmit and notify, microseconds", "ranks are nodes x the GPUs of a node")
    for family, dtype in zip(_EXCHANGES, ("fp8", "bf16"), strict=True):
        phase = family.removeprefix("moe_")
        seconds = (frame.numbers(f"{phase}_transmit_us") + frame.numbers(f"{phase}_notify_us")) * MICROSECONDS
        for sms, rows in groups(frame.text(f"{phase}_sms"), np.ones(len(frame), dtype=bool)):
            name = f"deepep_normal_{sms}sm"
            yield from _table(family, dtype, columns, seconds, rows, frame, source, name, policy=policy)


def _deepep_low_latency(frame: Frame, _: Floats, source: Source) -> Iterator[RawRows]:
    columns, every = _deepep(frame, source), np.ones(len(frame), dtype=bool)
    policy = (_OF_ONE_RANK, "microseconds", "ranks are nodes x the GPUs of a node")
    for family, dtype in zip(_EXCHANGES, ("fp8", "bf16"), strict=True):
        seconds = frame.numbers(f"{family.removeprefix('moe_')}_avg_t_us") * MICROSECONDS
        yield from _table(
            family, dtype, columns, seconds, every, frame, source, "deepep_low_latency", policy=policy
        )  # fmt: skip


def _any_backend(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    columns = _routed(frame, frame.integers("ep_size"), frame.integers("node_num"), "topk", "num_tokens")
    sms = frame.text("sms")
    backends = np.char.add(
        frame.text("comm_backend"), np.where(sms == "0", "", np.char.add(np.char.add("_", sms), "sm"))
    )
    stated = frame.text("comm_dtype")
    dtypes = own_dtypes(np.where(stated == "default", "bfloat16", stated))
    for family in _EXCHANGES:
        own = frame.text("phase") == family.removeprefix("moe_")
        for backend, named in groups(backends, own):
            for dtype, typed in known_dtypes(dtypes, source):
                policy: tuple[str, ...] = (_OF_ONE_RANK, "microseconds")
                if (stated[named & typed] == "default").any():
                    policy += ("dtype is of the tokens given; the rows do not state what the wire carries",)
                yield from _table(family, dtype, columns, seconds, named & typed, frame, source, backend, policy=policy)


_ALL_TO_ALL = {
    "alltoall_prepare": ("moe_prepare", ""),
    "alltoall_dispatch": ("moe_dispatch", ""),
    "alltoall_combine": ("moe_combine", ""),
    "alltoall_combine_low_precision": ("moe_combine", "_low_precision"),
}


def _all_to_all(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    ranks, operations = frame.integers("moe_ep_size"), frame.text("op_name")
    columns = _routed(frame, ranks, -(-ranks // source.gpus_per_node), "topk", "num_tokens")
    policy = (_OF_ONE_RANK, f"nodes of {source.gpus_per_node} GPUs")
    for operation, (family, suffix) in _ALL_TO_ALL.items():
        for kernel, named in groups(np.char.lower(frame.text("kernel_source")), operations == operation):
            for dtype, typed in known_dtypes(own_dtypes(frame.text("moe_dtype")), source):
                for workload, rows in groups(frame.text("distribution"), named & typed):
                    yield from _table(
                        family, dtype, columns, seconds, rows, frame, source, kernel + suffix, workload, policy
                    )


def _experts(
    backend: str, workloads: Texts, policy: tuple[str, ...], frame: Frame, seconds: Floats, source: Source
) -> Iterator[RawRows]:
    columns = {axis: frame.integers(name) for axis, name in MOE.items()}
    for dtype, own in known_dtypes(own_dtypes(frame.text("moe_dtype")), source):
        for workload, rows in groups(workloads, own):
            yield from _table("moe_gemm", dtype, columns, seconds, rows, frame, source, backend, workload, policy)


def _deepep_context(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    policy = ("behind DeepEP's normal exchange: tokens of each expert lie together",)
    yield from _experts("deepep_normal", frame.text("distribution"), policy, frame, seconds, source)


def _deepep_generation(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    policy = ("behind DeepEP's low-latency exchange: a padded buffer an expert",)
    yield from _experts("deepep_low_latency", frame.text("distribution"), policy, frame, seconds, source)


def _wide(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    slots = np.char.add(np.char.add(":", frame.text("num_slots")), "_slots")
    policy = ("workload is the routing, _eplb if experts are spread by it, and how many expert slots there are",)
    labels = np.char.add(frame.text("distribution"), slots)
    yield from _experts("trtllm_wideep", labels, policy, frame, seconds, source)


def _fused(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
    columns = {
        **{axis: frame.integers(name) for axis, name in MOE.items()},
        "tokens": frame.integers("global_num_tokens"),
    }
    labels = np.char.add(np.char.add(frame.text("distribution"), ":"), frame.text("phase"))
    policy = (
        "tokens of the whole expert group; weights 4 bits, activations 8",
        "gate and choice of experts not included",
    )
    for dtype, own in known_dtypes(own_dtypes(frame.text("moe_dtype")), source):
        for workload, rows in groups(labels, own):
            yield from _table(
                "moe_fused", dtype, columns, seconds, rows, frame, source, "deepgemm_megamoe", workload, policy
            )


def _mlp(workload: str) -> Callable[[Frame, Floats, Source], Iterator[RawRows]]:
    def read(frame: Frame, seconds: Floats, source: Source) -> Iterator[RawRows]:
        columns = {
            "hidden": frame.integers("hidden_size"),
            "ffn": frame.integers("intermediate_size"),
            "tokens": frame.integers("num_token"),
        }
        for dtype, rows in known_dtypes(own_dtypes(frame.text("quant_type")), source):
            yield from _table("mlp", dtype, columns, seconds, rows, frame, source, "", workload)

    return read


READERS = (
    Reader("wideep_deepep_normal", "comm", "wideep_deepep_normal_perf.parquet", _EXCHANGES, _deepep_normal, ()),
    Reader("wideep_deepep_ll", "comm", "wideep_deepep_ll_perf.parquet", _EXCHANGES, _deepep_low_latency, ()),
    Reader("moe_a2a", "comm", "moe_a2a_perf.parquet", _EXCHANGES, _any_backend, seconds_per_unit=MICROSECONDS),
    Reader("trtllm_alltoall", "comm", "trtllm_alltoall_perf.parquet", ("moe_prepare", *_EXCHANGES), _all_to_all),
    Reader("wideep_context_moe", "moe", "wideep_context_moe_perf.parquet", ("moe_gemm",), _deepep_context),
    Reader("wideep_generation_moe", "moe", "wideep_generation_moe_perf.parquet", ("moe_gemm",), _deepep_generation),
    Reader("wideep_moe", "moe", "wideep_moe_perf.parquet", ("moe_gemm",), _wide),
    Reader("dsv4_megamoe", "moe", "dsv4_megamoe_module_perf.parquet", ("moe_fused",), _fused),
    Reader("wideep_context_mlp", "mlp", "wideep_context_mlp_perf.parquet", ("mlp",), _mlp("context"), ("avg_ms",)),
    Reader(
        "wideep_generation_mlp", "mlp", "wideep_generation_mlp_perf.parquet", ("mlp",), _mlp("generation"), ("avg_ms",)
    ),
)
