"""What is run at a place on a GPU, from torch; it also runs on torch's CPU device, which the tests use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.functional import linear, scaled_dot_product_attention

from profiles.families import COLLECTIVES
from profiles.measure.operations import Run, routed_rows
from profiles.measure.place import Place, element_bytes

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp8": torch.float8_e4m3fn}


class UnsupportedError(Exception):
    """This torch, or this device, has no kernel for the operation at this dtype."""


def prepare(place: Place, device: str, group: Any = None) -> tuple[Run, str]:
    """A function that launches the operation of `place` once, and the kernel's name.

    `group` is the process group of a collective; ranks are those of its members. Raises `UnsupportedError`.
    """
    family, dtype, axes = place.curve.family, place.curve.dtype, place.axes
    if family == "memory_copy":
        return _copy(place.curve.workload, axes["message_bytes"], device)
    if family in COLLECTIVES:
        return _collective(family, axes["message_bytes"] // element_bytes(dtype), DTYPES[dtype], device, group)
    if family == "gemm":
        return _gemm(axes, dtype, device)
    if dtype == "fp8":
        raise UnsupportedError(f"torch has no fp8 kernel for {family} here")
    if family == "moe_gemm":
        return _experts(axes, dtype, device)
    return _attention(family, axes, dtype, device)


def _random(shape: Sequence[int], dtype: str, device: str) -> torch.Tensor:
    return torch.randn(tuple(shape), device=device, dtype=torch.bfloat16).to(DTYPES[dtype])


def _gemm(axes: dict[str, int], dtype: str, device: str) -> tuple[Run, str]:
    x, weight = _random((axes["m"], axes["k"]), dtype, device), _random((axes["n"], axes["k"]), dtype, device)
    if dtype != "fp8":
        return lambda: linear(x, weight), "torch linear"
    if axes["n"] % 16 or axes["k"] % 16:
        raise UnsupportedError("scaled_mm needs n and k in multiples of 16")
    one = torch.ones((), device=device)
    return lambda: torch._scaled_mm(x, weight.t(), one, one, out_dtype=torch.bfloat16), "torch scaled_mm, bf16 out"


def _attention(family: str, axes: dict[str, int], dtype: str, device: str) -> tuple[Run, str]:
    batch, heads, depth = axes.get("batch", 1), axes["heads"], axes["head_dim"]
    length = axes["kv_length"] if family == "decode_attention" else axes["length"]
    queries = 1 if family == "decode_attention" else length
    shared = axes.get("queries_per_kv_head", 1)
    q = _random((batch, heads, queries, depth), dtype, device)
    k, v = (_random((batch, heads // shared, length, depth), dtype, device) for _ in range(2))
    causal, grouped = family == "prefill_attention", shared > 1
    name = "torch scaled_dot_product_attention"
    return lambda: scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped), name


def _experts(axes: dict[str, int], dtype: str, device: str) -> tuple[Run, str]:
    """Gate and up as one product, then down, over the experts of one rank; grouped where torch has it (bf16)."""
    hidden, ffn, rows = axes["hidden"], axes["ffn"] // axes["tensor_ranks"], routed_rows(axes)
    up = _random((len(rows), 2 * ffn, hidden), dtype, device).transpose(1, 2)
    down = _random((len(rows), hidden, ffn), dtype, device).transpose(1, 2)
    x, y = _random((sum(rows), hidden), dtype, device), _random((sum(rows), ffn), dtype, device)
    grouped: Callable[..., object] | None = getattr(torch.nn.functional, "grouped_mm", None) or getattr(
        torch, "_grouped_mm", None
    )
    if grouped is not None and dtype == "bf16":
        ends = torch.tensor(rows, device=device).cumsum(0).to(torch.int32)

        def run_grouped() -> None:
            grouped(x, up, offs=ends)
            grouped(y, down, offs=ends)

        return run_grouped, "torch grouped_mm"
    parts = list(zip(x.split(rows), y.split(rows), up, down, strict=True))

    def run_each() -> None:
        for inputs, inner, first, second in parts:
            if len(inputs):
                torch.mm(inputs, first)
                torch.mm(inner, second)

    return run_each, "torch mm, an expert at a time"


def _copy(workload: str, message_bytes: int, device: str) -> tuple[Run, str]:
    """Host memory is pinned where there is a GPU to copy to."""
    start, end = workload.split("_to_")

    def at(place: str) -> torch.Tensor:
        if place == "device":
            return torch.zeros(message_bytes, dtype=torch.int8, device=device)
        return torch.zeros(message_bytes, dtype=torch.int8, pin_memory=device != "cpu")

    source, target = at(start), at(end)
    return lambda: target.copy_(
        source, non_blocking=True
    ), "torch copy_, pinned" if "host" in workload else "torch copy_"


def _collective(family: str, elements: int, dtype: torch.dtype, device: str, group: Any) -> tuple[Run, str]:
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    whole = torch.zeros(elements, dtype=dtype, device=device)
    part = torch.zeros(elements // ranks, dtype=dtype, device=device)
    # torch 2.13 renamed both.
    gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
    if family == "all_reduce":
        return lambda: dist.all_reduce(whole, group=group), "all_reduce"
    if family == "all_gather":
        return lambda: gather(whole, part, group=group), "all_gather"
    if family == "reduce_scatter":
        return lambda: scatter(part, whole, group=group), "reduce_scatter"
    other = torch.empty_like(whole)
    if family == "all_to_all":
        return lambda: dist.all_to_all_single(other, whole, group=group), "all_to_all_single"
    following, before = (dist.get_global_rank(group, (rank + step) % ranks) for step in (1, -1))

    def exchange() -> None:
        ways = [
            dist.P2POp(dist.isend, whole, following, group=group),
            dist.P2POp(dist.irecv, other, before, group=group),
        ]
        for way in dist.batch_isend_irecv(ways):
            way.wait()

    return exchange, "batch_isend_irecv"
