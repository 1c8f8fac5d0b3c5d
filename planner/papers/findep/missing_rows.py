"""Which field of a derived problem to change when the profile has no rows for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from planner.errors import BadInputError
from planner.papers.findep.attention_kernel import cache_rows
from planner.papers.findep.setting import Setting
from profiles.errors import ProfileError
from profiles.geometry.attention import LatentAttention


@contextmanager
def rows_of_attention(setting: Setting) -> Iterator[None]:
    """A profile's complaint about t_a or t_s becomes the planner's, with the field that can change it."""
    given, has = setting.given, setting.profile.has
    activations = "derive.dtype" if given.dtype == given.activation_dtype else "derive.profile"
    latent = isinstance(setting.model.kinds[0][0].attention, LatentAttention)
    kernel = "prefill_attention" if given.phase == "prefill" else "decode_attention"
    place = None
    if not has("gemm", given.dtype):
        place = "derive.dtype"
    elif not has("gemm", given.activation_dtype) or not (latent or has(kernel, given.activation_dtype)):
        place = activations
    elif given.phase == "decode" and not latent and not has(kernel, cache_rows(setting, kernel)[0]):
        place = "derive.kv_dtype"
    with _placed(setting, place):
        yield


@contextmanager
def rows_of_experts(setting: Setting) -> Iterator[None]:
    """The same of t_e."""
    given, place = setting.given, None
    if not setting.profile.has("moe_gemm", given.experts_dtype, workload=given.workload):
        routed = any(
            table.family == "moe_gemm" and table.dtype == given.experts_dtype
            for table in setting.profile.document.tables
        )
        place = "derive.dtype" if given.expert_dtype is None else "derive.expert_dtype"
        place = "derive.workload" if routed else place
    with _placed(setting, place):
        yield


@contextmanager
def _placed(setting: Setting, place: str | None) -> Iterator[None]:
    """``place`` None: the rows are there and do not reach."""
    given, search = setting.given, setting.search
    try:
        yield
    except ProfileError as error:
        message = error.message
        if place is None and given.extrapolate == "refuse":
            most = max(split.attention_gpus for split in setting.splits)
            tokens = most * search.max_m_a * given.tokens_per_sample
            smaller = "a smaller search.max_m_a, or " if search.max_m_a > 1 else ""
            message += (
                f". The search asks for up to {tokens:,} tokens of {most} attention GPUs: {smaller}a derive.splits of "
                "fewer attention GPUs asks for less"
            )
        default = "derive.extrapolate" if given.extrapolate == "refuse" else "derive.profile"
        raise BadInputError(message, code=error.code, where=place or default) from None
