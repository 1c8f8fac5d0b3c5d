"""Which field of a derived problem to change when the profile has no rows for a part of a forward."""

from __future__ import annotations

from planner.derivation.moe.attention_kernel import cache_rows
from planner.derivation.moe.forward import Forward
from profiles.profile import Profile


def place_of_attention(forward: Forward) -> str | None:
    """Of attention and the shared experts; None: the rows are there and do not reach."""
    has = forward.profile.has
    kernel = "prefill_attention" if forward.phase == "prefill" else "decode_attention"
    if not has("gemm", forward.dtype):
        return "derive.dtype"
    if not has("gemm", forward.activation_dtype) or not (forward.latent or has(kernel, forward.activation_dtype)):
        return "derive.dtype" if forward.dtype == forward.activation_dtype else "derive.profile"
    if forward.phase == "decode" and not forward.latent and not has(kernel, cache_rows(forward, kernel)[0]):
        return "derive.kv_dtype"
    return None


def place_of_experts(profile: Profile, dtype: str, workload: str, field: str) -> str | None:
    """Of routed experts in ``dtype``, which ``field`` states; None: the rows are there and do not reach."""
    if profile.has("moe_gemm", dtype, workload=workload):
        return None
    routed = any(table.family == "moe_gemm" and table.dtype == dtype for table in profile.document.tables)
    return "derive.workload" if routed else f"derive.{field}"
