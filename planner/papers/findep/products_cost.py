"""Matrix products of one layer on one GPU, shape by shape."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planner.derivation.account import Account
from planner.papers.findep.setting import Floats, Setting
from profiles.geometry.products import Product


def add_products(
    setting: Setting, account: Account, wanted: Iterable[Product], rows: Floats, dtype: str, layers: float = 1.0
) -> None:
    """Add ``layers`` times the products of ``rows`` rows to an account of the rows' shape. Raises ProfileError."""
    shapes = list(wanted)
    if not shapes:
        return
    n = np.array([[product.out_features] for product in shapes], dtype=np.float64)
    k = np.array([[product.in_features] for product in shapes], dtype=np.float64)
    priced = setting.profile.gemm(rows[None, :], n, k, dtype=dtype, extrapolate=setting.given.extrapolate)
    for seconds, source in zip(priced.seconds, priced.source, strict=True):
        account.add(f"gemm/{dtype}", layers * seconds, source)
