"""Seconds of causal attention of grouped heads, whole or over a sliding window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profiles.priced import Priced
from profiles.pricing import Extrapolate
from profiles.profile import Profile
from profiles.sizes import Floats, Sizes

Count = int | npt.NDArray[np.int64]


def grouped_causal(
    profile: Profile,
    length: int,
    batch: Floats | float,
    heads: Count,
    kv_heads: Count,
    head_dim: int,
    window: int | None,
    *,
    dtype: str,
    extrapolate: Extrapolate,
) -> tuple[Priced, bool]:
    """``batch`` sequences of ``length`` tokens, and whether other shapes stand in for a window of so many keys.

    Rows of that window where the profile has them, else causal pieces of 2 W tokens, which have as many pairs of query
    and key. Raises ProfileError outside the tables.
    """
    slides = window is not None and length > window
    workload = f"window_{window}"
    if slides and profile.has("prefill_attention", dtype, workload=workload):
        axes: dict[str, Sizes] = {
            "head_dim": head_dim,
            "queries_per_kv_head": heads // kv_heads,
            "heads": heads,
            "length": length,
        }
        axes["batch"] = batch
        found = profile.operation("prefill_attention", axes, dtype=dtype, workload=workload, extrapolate=extrapolate)
        return found, False
    if window is not None and slides:
        batch, length = batch * max(1.0, length / (2 * window)), min(length, 2 * window)
    price = profile.prefill_attention(length, batch, heads, kv_heads, head_dim, dtype=dtype, extrapolate=extrapolate)
    return price, slides
