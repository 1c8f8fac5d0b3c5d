"""Which field of a derived problem to change when the profile has no rows for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from planner.derivation.moe.missing_rows import place_of_attention, place_of_experts
from planner.errors import BadInputError
from planner.papers.findep.setting import Setting
from profiles.errors import ProfileError


@contextmanager
def rows_of_attention(setting: Setting) -> Iterator[None]:
    """A profile's complaint about t_a or t_s becomes the planner's, with the field that can change it."""
    with _placed(setting, place_of_attention(setting.forward)):
        yield


@contextmanager
def rows_of_experts(setting: Setting) -> Iterator[None]:
    """The same of t_e."""
    given = setting.given
    field = "dtype" if given.expert_dtype is None else "expert_dtype"
    place = place_of_experts(setting.profile, given.experts_dtype, given.workload, field)
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
