"""The curves to measure and the sizes each starts with.

Axes between curves (n and k, heads, ranks) are full grids, since a lookup between four curves needs all four; shapes
that are named replace the grid, because a lonely one would leave holes around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import TypeVar

from profiles.measure.options import COMPUTE, EXPERT_AXES, MEASURED_COLLECTIVES, Device, Options, check_experts
from profiles.measure.place import Curve, Ladder
from profiles.measure.shapes import Shapes, shapes_of

Fixed = tuple[tuple[str, int], ...]
Item = TypeVar("Item")

PRODUCTS: dict[Device, tuple[int, ...]] = {"cpu": (256, 1024, 4096), "cuda": (1024, 4096, 16384)}
HEADS: dict[Device, tuple[int, ...]] = {"cpu": (1, 8), "cuda": (1, 8, 64)}
HEAD_DIMS = (64, 128)
DECODE_BATCHES: dict[Device, tuple[int, ...]] = {"cpu": (1, 8), "cuda": (1, 16, 256)}
GROUPED_HEADS: dict[Device, tuple[int, ...]] = {"cpu": (8,), "cuda": (8, 64)}
QUERIES_PER_KV_HEAD = (1, 4)
EXPERTS: dict[Device, tuple[tuple[int, ...], ...]] = {
    "cpu": ((1024, 512, 8, 2, 1, 1),),
    "cuda": ((4096, 14336, 8, 2, 1, 1), (7168, 2048, 256, 8, 1, 8)),
}
COPIES: dict[Device, tuple[str, ...]] = {
    "cpu": ("host_to_host",),
    "cuda": ("host_to_device", "device_to_host", "device_to_device"),
}
SIZES: dict[Device, dict[str, tuple[int, int]]] = {
    "cpu": {"m": (1, 8192), "length": (64, 16384), "kv_length": (64, 16384), "tokens": (1, 4096)},
    "cuda": {"m": (1, 65536), "length": (256, 65536), "kv_length": (64, 131072), "tokens": (1, 65536)},
}
"""Smallest and largest size of the curves."""
MESSAGE_POWERS: dict[Device, tuple[int, int]] = {"cpu": (12, 28), "cuda": (12, 30)}
"""Smallest and largest message and copy, as powers of two."""


def ladders(options: Options, backend: str, worlds: Iterable[tuple[int, int]]) -> list[Ladder]:
    """Every curve with its first sizes, in the order of the operations.

    `worlds` are (nodes, ranks) whose collectives can be measured, `backend` carries them.
    """
    wanted = options.families()
    found: list[Ladder] = []
    fixed_axes = _compute_axes(options)
    for dtype, family in product(options.precisions(), COMPUTE):
        for fixed in fixed_axes[family] if family in wanted else ():
            curve = Curve(family, dtype, "", "balanced" if family == "moe_gemm" else "", fixed)
            found.append(
                Ladder(curve, _rungs(*SIZES[options.device][curve.along], 4 if curve.along == "length" else 8))
            )
    if "memory_copy" in wanted:
        sizes = _message_sizes(options.device, 1)
        found += [Ladder(Curve("memory_copy", "int8", "", where, ()), sizes) for where in COPIES[options.device]]
    dtype = collective_dtype(options.precisions()[0], backend)
    for family, (nodes, ranks) in product(MEASURED_COLLECTIVES, sorted(set(worlds))):
        if family in wanted:
            curve = Curve(family, dtype, backend, "", (("nodes", nodes), ("ranks", ranks)))
            found.append(Ladder(curve, _message_sizes(options.device, curve.step)))
    return found


def collective_dtype(first: str, backend: str) -> str:
    """What collectives are measured with where `first` is the first dtype of a run.

    They count bytes: one dtype stands for all. Nothing adds fp8, and shared memory nothing but numpy's dtypes.
    """
    return {"shared_memory": "fp32"}.get(backend, first.replace("fp8", "bf16"))


def _compute_axes(options: Options) -> dict[str, list[Fixed]]:
    """The fixed axes of each compute family: those of the models and shapes that are named, else a grid."""
    device, shapes = options.device, _shapes(options)
    batches = DECODE_BATCHES[device]
    return {
        "gemm": [(("n", n), ("k", k)) for n, k in shapes.products],
        "encoder_attention": [(("head_dim", dim), ("heads", heads)) for dim, heads in shapes.encoder],
        "prefill_attention": [_grouped(dim, queries, 1, heads) for dim, queries, heads in shapes.causal],
        "decode_attention": [
            _grouped(dim, queries, batch, heads) for (dim, queries, heads), batch in product(shapes.causal, batches)
        ],
        "moe_gemm": [tuple(zip(EXPERT_AXES, experts, strict=True)) for experts in shapes.experts],
    }


def _shapes(options: Options) -> Shapes:
    """A model replaces the grid of every compute family, a shape that of its own."""
    device, sides = options.device, PRODUCTS[options.device]
    grid = Shapes(
        products=tuple(product(sides, sides)),
        encoder=tuple(product(HEAD_DIMS, HEADS[device])),
        causal=tuple(product(HEAD_DIMS[1:], QUERIES_PER_KV_HEAD, GROUPED_HEADS[device])),
        experts=EXPERTS[device],
    )
    found = shapes_of(options.models) if options.models else grid
    if options.shapes:
        found = replace(found, products=_joined(found.products if options.models else (), options.shapes))
    if options.experts:
        found = replace(found, experts=_joined(found.experts if options.models else (), options.experts))
    for experts in found.experts:
        check_experts(experts)
    return found


def _joined(first: tuple[Item, ...], second: tuple[Item, ...]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys([*first, *second]))


def _grouped(head_dim: int, queries: int, batch: int, heads: int) -> Fixed:
    return ("head_dim", head_dim), ("queries_per_kv_head", queries), ("batch", batch), ("heads", heads)


def _rungs(low: int, high: int, factor: int) -> tuple[int, ...]:
    """From `low` to `high` by a factor; the last step may be shorter."""
    sizes = [low]
    while sizes[-1] * factor <= high:
        sizes.append(sizes[-1] * factor)
    return tuple(sizes if sizes[-1] == high else [*sizes, high])


def _message_sizes(device: Device, step: int) -> tuple[int, ...]:
    """Powers of two by factors of sixteen or less, rounded to whole elements for each rank."""
    low, high = MESSAGE_POWERS[device]
    exponents = sorted({*range(low, high, 4), high})
    return tuple(max(1, round(2**exponent / step)) * step for exponent in exponents)
