"""Seconds of an operator that is run in sequence or cut into chunks (page, equations 1 and 2), for many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from planner.papers.compass.problem import Operator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class Costs:
    """Start-ups and payloads [s] and slow-downs, arrays of one shape; NaN where an operator states no stages."""

    a_c: Floats
    v_c: Floats
    a_g: Floats
    v_g: Floats
    mu_c: Floats
    mu_g: Floats

    def of(self, index: int | Ints) -> Costs:
        """Those of some operators, repeated as the index says."""
        return Costs(
            *(np.asarray(column[index]) for column in (self.a_c, self.v_c, self.a_g, self.v_g, self.mu_c, self.mu_g))
        )


MOST_APART = 20
"""Times that an overlapped run and what is known of it may differ, or a stage slow down, before a unit is doubted.

Overlap at best hides the shorter of two stages, and measured contention is below 2.
"""

_UNPRICED = (np.nan, np.nan, np.nan, np.nan)


def costs_of(operators: Sequence[Operator]) -> Costs:
    """The costs of operators, in their order."""
    rows = []
    for operator in operators:
        comm, gemm, mu = operator.comm, operator.gemm, operator.contention
        stages = (
            _UNPRICED
            if comm is None or gemm is None
            else (comm.startup_s, comm.payload_s, gemm.startup_s, gemm.payload_s)
        )
        rows.append((*stages, mu.comm, mu.gemm))
    return Costs(*np.fromiter(chain.from_iterable(rows), np.float64, 6 * len(rows)).reshape(-1, 6).T)


def inter_decom_s(costs: Costs, d: Floats | Ints | float) -> Floats:
    """T(d) [s] of equation 2; at d = 1 that is equation 1, both stages in sequence."""
    t_c = costs.a_c + costs.v_c / d
    t_g = costs.a_g + costs.v_g / d
    slower = np.maximum(costs.mu_c * t_c, costs.mu_g * t_g)
    return np.asarray(t_c + t_g + (np.asarray(d) - 1) * slower)


def is_comm_bound(costs: Costs, d: Floats | Ints | float) -> Truths:
    """Whether the collective is the slower stage of the steady state at ``d``."""
    return np.asarray(costs.mu_c * (costs.a_c + costs.v_c / d) >= costs.mu_g * (costs.a_g + costs.v_g / d))
