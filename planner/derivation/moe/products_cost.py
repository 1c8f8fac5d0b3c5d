"""Matrix products of one layer on one device, shape by shape."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planner.derivation.account import Account, Floats
from planner.derivation.moe.forward import Forward
from profiles.geometry.products import Product


def add_products(
    forward: Forward, account: Account, wanted: Iterable[Product], rows: Floats, dtype: str, layers: float = 1.0
) -> None:
    """Add ``layers`` times the products of ``rows`` rows to an account of the rows' shape. Raises ProfileError."""
    shapes = list(wanted)
    if not shapes:
        return
    n = np.array([[product.out_features] for product in shapes], dtype=np.float64)
    k = np.array([[product.in_features] for product in shapes], dtype=np.float64)
    priced = forward.profile.gemm(rows[None, :], n, k, dtype=dtype, extrapolate=forward.extrapolate)
    for seconds, source in zip(priced.seconds, priced.source, strict=True):
        account.add(f"gemm/{dtype}", layers * seconds, source)
