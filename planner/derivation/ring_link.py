"""alpha and beta of a ring: over the ranks of a node, from its measured gathers and scatters, and between nodes.

A ring of n ranks takes (n - 1) alpha + (n - 1) / n bytes beta, so a line over the whole array's bytes gives both.
Between nodes beta is of one GPU's port where that is known: a ring of r ranks in each node goes through r ports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.attribution import Sources
from planner.derivation.account import nine_digits, rounded_shares, sources_of
from planner.derivation.collective_line import collective_line
from profiles.cluster import Link
from profiles.clusters.tiers import STATED
from profiles.pricing import Extrapolate
from profiles.profile import Profile

OPERATIONS = ("all_gather", "reduce_scatter")


@dataclass(frozen=True)
class RingLink:
    """Seconds of a step and of a byte, and the sources of the rows behind them.

    ``beta_of`` says whose link a byte goes over: all that the ring has, or one GPU's port.
    """

    alpha_s: float
    beta_s_per_byte: float
    sources: Sources
    beta_of: Literal["ring", "gpu"] = "ring"


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


def nodes_ring(link: Link) -> RingLink:
    """A ring between nodes: a stated link is one GPU's port, one fitted to a log is all that the log's rings had.

    With r GPUs in every node of the log, a port is an r-th of that; where nodes had unlike numbers of them it stands
    for any ring.
    """
    sources = Sources(stated=1.0) if link.source == STATED else Sources(modelled=1.0)
    num_ports = link.ranks_per_node if link.fit_error is not None else 1
    beta = float(f"{(num_ports or 1) / link.bandwidth_bytes_per_s:.8e}")
    return RingLink(link.latency_s, beta, sources, "ring" if num_ports is None else "gpu")
