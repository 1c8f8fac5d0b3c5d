"""alpha and beta of a ring over the ranks of a node, from its measured gathers and scatters.

A ring of n ranks takes (n - 1) alpha + (n - 1) / n bytes beta, so a line over the whole array's bytes gives both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.attribution import Sources
from planner.derivation.account import nine_digits, rounded_shares, sources_of
from planner.derivation.collective_line import collective_line
from profiles.pricing import Extrapolate
from profiles.profile import Profile

OPERATIONS = ("all_gather", "reduce_scatter")


@dataclass(frozen=True)
class RingLink:
    """Seconds of a step and of a byte, and the sources of the rows behind them."""

    alpha_s: float
    beta_s_per_byte: float
    sources: Sources


def node_ring(profile: Profile, ranks: int, extrapolate: Extrapolate) -> RingLink:
    """The ring of ``ranks`` > 1 ranks of a node: the mean of gathers and scatters, as far as there are rows of both.

    Raises ProfileError: no rows of either, or fewer ranks measured.
    """
    measured = {table.family for table in profile.document.tables}
    known = [operation for operation in OPERATIONS if operation in measured] or OPERATIONS[:1]
    fitted = [collective_line(profile, operation, ranks, extrapolate) for operation in known]
    alpha = float(np.mean([each.line.alpha for each in fitted])) / (ranks - 1)
    beta = float(np.mean([each.line.beta for each in fitted])) * ranks / (ranks - 1)
    alpha, beta = nine_digits(np.array([alpha, beta]))
    shares = np.mean([list(each.sources.model_dump().values()) for each in fitted], axis=0)
    return RingLink(alpha, beta, sources_of(rounded_shares(shares).tolist()))
