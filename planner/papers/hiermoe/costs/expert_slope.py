"""kappa: seconds that one more (token, expert) assignment costs a rank, from the rows of whole grouped products.

A row is all E experts on one device for so many tokens, K assignments each. A rank of G has E/G of them and, where
experts are as busy, so many times fewer assignments: the same seconds an assignment. With few tokens reading the
weights takes the time, whatever is assigned; kappa is the slope beyond, of the line of least squared relative error
through the rows of 128 assignments an expert and more. So where a rank's experts get fewer, as in decoding small
batches, kappa overstates what imbalance costs: a smaller ``objective.compute_multiplier`` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.attribution import Sources
from planner.derivation.account import Error, Floats, rounded_shares, sources_of
from planner.derivation.lines import Line, line_through
from planner.derivation.moe.model import MoeModel
from planner.derivation.references import input_errors
from planner.errors import BadInputError
from planner.papers.hiermoe.derived import Derive
from profiles.experts import FAMILY, ExpertRows, whole_formula, whole_products
from profiles.priced import SOURCES
from profiles.profile import Profile

BUSY = 128.0
"""Assignments an expert from which its products, not its weights, take the time: a tile of the kernels."""
POINTS: Floats = np.logspace(0, 5, 6, base=2.0)
"""Times as many, at which experts without rows of their own are priced by the formula."""


@dataclass(frozen=True)
class Slope:
    """kappa, the line by tokens behind it, where its points come from, and the stored error of such prices."""

    seconds_per_assignment: float
    line: Line
    sources: Sources
    error: Error | None


def expert_slope(given: Derive, model: MoeModel, profile: Profile) -> Slope:
    """Raises BadInputError (outside_measured_range) for experts without rows, unless extrapolate is roofline."""
    experts = model.experts
    if not experts.gated:
        message = f"the experts of {model.name} are not gated: rows of experts are of three products each"
        raise BadInputError(message, code="out_of_range", where="derive.model")
    rows = ExpertRows(profile, model.hidden, experts.ffn, experts.count, experts.top_k, given.workload, given.dtype)
    measured = 1 in rows.expert_ranks()
    with input_errors("derive.profile"):
        busy = BUSY * experts.count / experts.top_k
        tokens = busy * POINTS
        if measured:
            columns = profile.cost_table(FAMILY, given.dtype, workload=given.workload).columns
            own = np.ones(len(columns["tokens"]), dtype=bool)
            for axis, size in zip(("hidden", "ffn", "experts", "top_k", "tensor_ranks"), rows.geometry, strict=True):
                own &= columns[axis] == size
            every = np.unique(columns["tokens"][own & (columns["expert_ranks"] == 1)]).astype(np.float64)
            tokens = every[every >= busy] if np.count_nonzero(every >= busy) > 1 else every[-2:]
        price = whole_products(rows, tokens, given.extrapolate)
        error = (
            profile.cost_error(FAMILY, given.dtype)
            if measured
            else whole_formula(profile, given.workload, given.dtype).error
        )
    line = line_through(tokens, price.seconds)
    shares = np.array([(price.source == index).mean() for index in range(len(SOURCES))])
    kappa = float(f"{line.beta / experts.top_k:.8e}")
    return Slope(kappa, line, sources_of(rounded_shares(shares).tolist()), error)
