"""A dtype that is priced slower than bf16: the measured kernel is a poor one, and the plan says so.

A narrower dtype has less to read and more FLOP/s; the measured time stays.
"""

from __future__ import annotations

from planner.errors import BadInputError
from planner.papers.hiermoe.costs.expert_slope import Slope, expert_slope
from planner.papers.hiermoe.costs.moe_model import MoeModel
from planner.papers.hiermoe.derived import Derive
from planner.papers.hiermoe.problem import Cautions
from profiles.errors import shown
from profiles.experts import FAMILY
from profiles.families import DTYPE_BYTES
from profiles.profile import Profile

WIDE = "bf16"
SLOWER = 1.1
"""Times slower that is worth a word: rows are hardly nearer."""


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
    more = DTYPE_BYTES[WIDE] / DTYPE_BYTES[given.dtype]
    return {
        "narrow_dtype_slower": f"experts are priced {times:.2g} times slower in {given.dtype} than in {WIDE}, as "
        f"{_kernels(given, profile)} was measured: compare derive.dtype={WIDE} ({float(more):g} times their bytes), or "
        "import rows of your kernel"
    }


def _kernels(given: Derive, profile: Profile) -> str:
    """The kernels whose rows price the experts, as the profile names them."""
    key = (FAMILY, given.dtype, "", given.workload)
    names = next((table.kernels for table in profile.document.tables if table.key == key), ())
    return shown(", ".join(names) or f"its {FAMILY}", 120)
