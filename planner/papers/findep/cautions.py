"""What the reader of a plan should know of its prices: a dtype that is priced slower than a wider one, rows that stand
in for others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.derivation.account import Account
from planner.derivation.narrow_dtype import SLOWER, experts_slower, measured_as
from planner.papers.findep.amounts import Caution
from planner.papers.findep.attention_cost import attention_seconds
from planner.papers.findep.attention_kernel import stands_in
from planner.papers.findep.expert_cost import expert_seconds
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.setting import Floats, Setting
from profiles.errors import ProfileError, shown
from profiles.families import DTYPE_BYTES

Said = dict[Caution, str]


def attention_cautions(setting: Setting, samples: Floats, seconds: Floats) -> Said | None:
    """Of t_a, priced at ``seconds``; None if there is nothing to say."""
    given, said = setting.given, Said()
    wide = given.activation_dtype
    times = _times_slower(setting, given.dtype, "dtype", seconds, lambda other: attention_seconds(other, samples))
    if times is not None:
        kernels = measured_as(setting.profile, "gemm", given.dtype)
        said["narrow_dtype_slower"] = (
            f"attention GPUs are priced {times:.2g} times slower in {given.dtype} than in {wide}, as "
            f"{kernels} was measured: compare derive.dtype={wide}, or import rows of "
            "your kernels"
        )
    if stands_in(setting):
        said["cache_rows_stand_in"] = (
            f"profile {shown(setting.profile.name)} has no rows of attention over a cache in {given.cache_dtype}: its "
            f"bytes count as {given.cache_dtype}, but its time is that of {wide}"
        )
    return said or None


def expert_cautions(setting: Setting, tokens: Floats, seconds: Floats) -> Said | None:
    """Of t_e, priced at ``seconds`` (splits, points); None if there is nothing to say."""
    given = setting.given
    dtype, wide = given.experts_dtype, given.activation_dtype
    times = _times_slower(setting, dtype, "expert_dtype", seconds, lambda other: expert_seconds(other, tokens))
    if times is None:
        return None
    kernels = measured_as(setting.profile, "moe_gemm", dtype, given.workload)
    return {"narrow_dtype_slower": experts_slower(times, dtype, wide, kernels, "expert_dtype")}


def cautions_of(problem: FindepProblem) -> Said:
    """All that the costs of an explicit problem say, by code; of several parts with one code, each."""
    said = Said()
    experts = (split.expert for split in problem.splits)
    for cost in (problem.expert, *experts, problem.attention, problem.shared_expert):
        for code, text in ((cost.cautions if cost else None) or {}).items():
            if text not in said.get(code, ""):
                said[code] = f"{said[code]}; {text}" if code in said else text
    return said


def _times_slower(
    setting: Setting, dtype: str, field: str, seconds: Floats, price: Callable[[Setting], Account]
) -> float | None:
    """How many times slower ``seconds`` are than with activations' dtype in ``field``; None if hardly, or unknown."""
    wide = setting.given.activation_dtype
    if DTYPE_BYTES[dtype] >= DTYPE_BYTES[wide]:
        return None
    try:
        wider = price(replace(setting, given=setting.given.model_copy(update={field: wide})))
    except ProfileError:
        return None
    # A geometric mean over what the search may ask.
    times = float(np.exp(np.log(seconds / wider.seconds).mean()))
    return times if times > SLOWER else None
