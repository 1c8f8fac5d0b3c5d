"""Latent attention (MLA) from rows of its own, else from what a profile's rows of grouped heads say of the device.

The formulas of `profiles.roofline` for latent attention have the coefficients of those for grouped heads: what a launch
costs, how fast the device multiplies inside attention and how fast it reads a cache, how much work fills it. Where a
profile has no latent rows, `extrapolate="roofline"` prices them from these, tagged modelled:

* mla_prefill: the coefficients of prefill_attention.
* mla_decode: overhead and bytes/s of decode_attention, FLOP/s of prefill_attention. Grouped heads decode at the speed
  of memory, so their rows say nothing of FLOP/s; 128 heads over one latent do 240 FLOPs a byte and need it.
* mla_bmm: those of gemm, for the per-head product of (tokens, 128) by (128, 512); bytes/s at most the device memory's,
  which small products measured in a loop exceed in cache.

Widths are those of DeepSeek V2 and V3 and Kimi K2, which is what the formulas and all known rows are of.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from profiles.families import DTYPE_BYTES
from profiles.geometry.attention import LatentAttention
from profiles.priced import Priced, modelled
from profiles.pricing import Extrapolate
from profiles.profile import Profile
from profiles.roofline import modelled_seconds
from profiles.sizes import Sizes, flat

NOPE, ROPE, V, KV_LORA = 128, 64, 128, 512


def has_known_widths(attention: LatentAttention) -> bool:
    """Whether rows and formulas are of these widths."""
    return (attention.nope, attention.rope, attention.v, attention.kv_lora) == (NOPE, ROPE, V, KV_LORA)


def latent_prefill(
    profile: Profile, length: Sizes, batch: Sizes, heads: Sizes, *, dtype: str, extrapolate: Extrapolate
) -> Priced:
    """The kernel over `length` new tokens of each of `batch` sequences, causal, keys and values expanded."""
    axes = {"heads": heads, "batch": batch, "length": length}
    if profile.has("mla_prefill", dtype) or extrapolate != "roofline":
        return profile.operation("mla_prefill", axes, dtype=dtype, extrapolate=extrapolate)
    return _modelled("mla_prefill", axes, profile.formula("prefill_attention", dtype), dtype)


def latent_decode(
    profile: Profile, kv_length: Sizes, batch: Sizes, heads: Sizes, *, dtype: str, extrapolate: Extrapolate
) -> Priced:
    """The kernel of one query token a sequence over `kv_length` cached latents, weights absorbed."""
    axes = {"heads": heads, "batch": batch, "kv_length": kv_length}
    if profile.has("mla_decode", dtype) or extrapolate != "roofline":
        return profile.operation("mla_decode", axes, dtype=dtype, extrapolate=extrapolate)
    grouped, compute = profile.formula("decode_attention", dtype), profile.formula("prefill_attention", dtype)
    coefficients = {
        "overhead_s": grouped["overhead_s"],
        "bytes_per_s": grouped["bytes_per_s"],
        "flop_per_s": compute["flop_per_s"],
        "rows_0": 0.0,
        "length_0": 0.0,
    }
    return _modelled("mla_decode", axes, coefficients, dtype)


def latent_product(
    profile: Profile, tokens: Sizes, heads: Sizes, *, before: bool, dtype: str, extrapolate: Extrapolate
) -> Priced:
    """The product of every head before `latent_decode` (queries into the latent) or after it (values out of it)."""
    axes = {"heads": heads, "tokens": tokens}
    workload = "mla_gen_pre" if before else "mla_gen_post"
    if profile.has("mla_bmm", dtype, workload=workload) or extrapolate != "roofline":
        return profile.operation("mla_bmm", axes, dtype=dtype, workload=workload, extrapolate=extrapolate)
    gemm = profile.formula("gemm", dtype)
    memory = profile.device.memory_bandwidth_bytes_per_s or gemm["bytes_per_s"]
    filled = KV_LORA / (KV_LORA + gemm["n_0"]) * NOPE / (NOPE + gemm["k_0"])
    coefficients = {
        "overhead_s": gemm["overhead_s"],
        "bytes_per_s": min(gemm["bytes_per_s"], memory),
        "flop_per_s": gemm["flop_per_s"] * filled,
        "tokens_0": gemm["m_0"],
    }
    return _modelled("mla_bmm", axes, coefficients, dtype)


def _modelled(family: str, axes: Mapping[str, Sizes], coefficients: Mapping[str, float], dtype: str) -> Priced:
    query, shape = flat(axes)
    return modelled(np.reshape(modelled_seconds(family, query, coefficients, float(DTYPE_BYTES[dtype])), shape))
