"""Seconds of products with weights: forward, the gradient of the input, and the gradient of the weight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from planner.derivation.account import Floats
from planner.derivation.training.cuts import Ints
from planner.derivation.training.device import Device
from planner.derivation.training.parts import Part
from planner.derivation.training.reached import Missing, reached
from profiles.errors import ProfileError
from profiles.geometry.products import Product
from profiles.priced import MODELLED, Priced
from profiles.pricing import Extrapolate

BACKWARD_PRODUCTS = 2.0
"""Backward of a product in forwards: the gradients of its input and of its weight, as many FLOPs each."""


@dataclass(frozen=True)
class Sized:
    """A product of ``tokens`` rows, ``times`` over, in each layout of ``rows``, an index of layouts."""

    product: Product
    dtype: str
    tokens: Floats
    rows: Ints
    times: Floats | float = 1.0


def product_parts(device: Device, wanted: Iterable[Sized], missing: Missing) -> tuple[list[Part], list[Part]]:
    """Forward and backward of products, one lookup for each dtype.

    Forward is (T, k) by (k, n), backward (T, n) by (n, k) and (n, T) by (T, k). A gradient that the rows do not reach
    takes what the forward takes, as many FLOPs, and counts as modelled.
    """
    by_dtype: dict[str, list[Sized]] = {}
    for one in wanted:
        by_dtype.setdefault(one.dtype, []).append(one)
    forward, backward = [], []
    for dtype, mine in by_dtype.items():
        ahead, back = _of_dtype(device, dtype, mine, missing)
        forward += ahead
        backward += back
    return forward, backward


def _of_dtype(device: Device, dtype: str, wanted: list[Sized], missing: Missing) -> tuple[list[Part], list[Part]]:
    rows = np.concatenate([one.rows for one in wanted])
    m = np.concatenate([one.tokens for one in wanted])
    n = np.concatenate([np.full(len(one.rows), float(one.product.out_features)) for one in wanted])
    k = np.concatenate([np.full(len(one.rows), float(one.product.in_features)) for one in wanted])
    times = np.concatenate([np.broadcast_to(one.times, len(one.rows)) for one in wanted])

    def price(extrapolate: Extrapolate) -> Priced:
        return device.profile.gemm(m, n, k, dtype=dtype, extrapolate=extrapolate)

    family, size = f"gemm/{dtype}", len(missing.rows)
    forward = reached(device, family, missing, rows, price)
    gradients = (_or_forward(device, m, k, n, dtype, forward), _or_forward(device, n, k, m, dtype, forward))
    return (
        _by_source(family, rows, (forward,), times, size),
        _by_source(family, rows, gradients, times, size),
    )


def _or_forward(device: Device, m: Floats, n: Floats, k: Floats, dtype: str, forward: Priced) -> Priced:
    try:
        own = device.profile.gemm(m, n, k, dtype=dtype, extrapolate="roofline")
    except ProfileError:
        return Priced(forward.seconds, np.full_like(forward.source, MODELLED))
    beyond = (own.source == MODELLED) & (device.extrapolate == "refuse")
    return Priced(np.where(beyond | np.isnan(forward.seconds), forward.seconds, own.seconds), own.source)


def _by_source(family: str, rows: Ints, prices: Iterable[Priced], times: Floats, size: int) -> list[Part]:
    """Sums over products, one part for each source that occurs."""
    sums: dict[int, Floats] = {}
    for price in prices:
        for source in np.unique(price.source).tolist():
            mine = price.source == source
            more = np.bincount(rows[mine], (times * price.seconds)[mine], size)
            sums[source] = sums.get(source, np.zeros(size)) + more
    return [
        Part("gemm", family, seconds, np.full(size, source, dtype=np.int8)) for source, seconds in sorted(sums.items())
    ]
