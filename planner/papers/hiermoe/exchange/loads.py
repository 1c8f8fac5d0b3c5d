"""How often each expert is chosen: what every rule that balances ranks looks at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.instance import Case, LayerCase, Loads, Tokens


def expert_loads(case: Case, layer: LayerCase) -> NDArray[np.float64]:
    """float64 [E]: assignments of each expert over all ranks."""
    routed = layer.routed
    if isinstance(routed, Tokens):
        return np.bincount(routed.expert_ids.ravel(), minlength=case.E).astype(np.float64)
    if isinstance(routed, Loads):
        return routed.load
    return np.full(case.E, routed.tokens_per_rank * case.G * case.K / case.E)
