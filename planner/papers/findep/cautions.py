"""What the reader of a plan should know of its prices: experts slower than in a wider dtype, and all that was said."""

from __future__ import annotations

from dataclasses import replace

from planner.attribution import Said
from planner.derivation.account import Floats
from planner.derivation.narrow_dtype import experts_slower, measured_as, times_slower
from planner.papers.findep.expert_cost import expert_seconds
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.setting import Setting


def expert_cautions(setting: Setting, tokens: Floats, seconds: Floats) -> Said | None:
    """Of t_e, priced at ``seconds`` (splits, points); None if there is nothing to say."""
    given = setting.given
    dtype, wide = given.experts_dtype, given.activation_dtype
    wider = replace(setting, given=given.model_copy(update={"expert_dtype": wide}))
    times = times_slower(dtype, wide, seconds, lambda: expert_seconds(wider, tokens).seconds)
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
