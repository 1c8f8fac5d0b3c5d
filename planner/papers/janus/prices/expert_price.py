"""Expert instances: beta and c_e as a document, with what their reader should know."""

from __future__ import annotations

from dataclasses import dataclass

from planner.derivation.moe.missing_rows import place_of_experts
from planner.derivation.narrow_dtype import experts_slower, measured_as, times_slower
from planner.errors import BadInputError
from planner.papers.janus.costs import Caution, Experts
from planner.papers.janus.prices.expert_line import ExpertLine, expert_line, few_seconds
from planner.papers.janus.prices.setting import Setting
from profiles.errors import ProfileError
from profiles.experts import FAMILY


@dataclass(frozen=True)
class ExpertPrice:
    """The document, and the line behind it."""

    document: Experts
    fitted: ExpertLine


def expert_price(setting: Setting) -> ExpertPrice:
    """Raises BadInputError where the profile has no rows of such experts."""
    given, dtype = setting.given, setting.given.experts_dtype
    rows, wide = setting.expert_rows(dtype), setting.expert_rows(given.activation_dtype)
    field = "dtype" if given.expert_dtype is None else "expert_dtype"
    try:
        fitted = expert_line(rows, given.extrapolate)
        own = few_seconds(rows, given.extrapolate)
    except ProfileError as error:
        default = "derive.extrapolate" if given.extrapolate == "refuse" else "derive.profile"
        place = place_of_experts(setting.experts, dtype, given.workload, field) or default
        raise BadInputError(error.message, code=error.code, where=place) from None
    said: dict[Caution, str] = {}
    times = times_slower(dtype, wide.dtype, own, lambda: few_seconds(wide, given.extrapolate))
    if times is not None:
        kernels = measured_as(setting.experts, FAMILY, dtype, given.workload)
        said["narrow_dtype_slower"] = experts_slower(times, dtype, wide.dtype, kernels, "expert_dtype")
    document = Experts(
        per_expert_s=fitted.line.beta,
        base_s=fitted.line.alpha,
        sources=fitted.sources,
        cautions=said or None,
        holds_to_batch=fitted.holds_to_tokens,
    )
    return ExpertPrice(document, fitted)
