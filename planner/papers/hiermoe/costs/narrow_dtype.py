"""A dtype that is priced slower than bf16: the measured kernel is a poor one, and the plan says so.

A narrower dtype has less to read and more FLOP/s; the measured time stays.
"""

from __future__ import annotations

from planner.derivation.moe.model import MoeModel
from planner.derivation.narrow_dtype import SLOWER, experts_slower, measured_as
from planner.errors import BadInputError
from planner.papers.hiermoe.costs.expert_slope import Slope, expert_slope
from planner.papers.hiermoe.derived import Derive
from planner.papers.hiermoe.problem import Cautions
from profiles.experts import FAMILY
from profiles.families import DTYPE_BYTES
from profiles.profile import Profile

WIDE = "bf16"


def slope_cautions(given: Derive, model: MoeModel, profile: Profile, slope: Slope) -> Cautions:
    """Of kappa; None if there is nothing to say, or nothing to compare with."""
    if DTYPE_BYTES[given.dtype] >= DTYPE_BYTES[WIDE]:
        return None
    try:
        wide = expert_slope(given.model_copy(update={"dtype": WIDE}), model, profile)
    except BadInputError:
        return None
    if slope.seconds_per_assignment <= SLOWER * wide.seconds_per_assignment:
        return None
    times = slope.seconds_per_assignment / wide.seconds_per_assignment
    kernels = measured_as(profile, FAMILY, given.dtype, given.workload)
    return {"narrow_dtype_slower": experts_slower(times, given.dtype, WIDE, kernels, "dtype")}
