"""The least a_max that any choice of copies reaches for a batch: what AEBS is measured against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.janus.experts.placement import Ints


def least_largest_load(active: NDArray[np.bool_], hosts: list[Ints], instances: int) -> int:
    """Of one batch, ``active`` bool [E]: the least cap within which every activated expert has an instance.

    Experts are matched to instances one by one along augmenting paths; the cap rises where there is none.
    """
    serves: list[list[int]] = [[] for _ in range(instances)]
    cap = 0
    for expert in np.flatnonzero(active).tolist():
        while not _placed(expert, hosts, serves, cap, set()):
            cap += 1
    return cap


def _placed(expert: int, hosts: list[Ints], serves: list[list[int]], cap: int, tried: set[int]) -> bool:
    """Whether an expert finds an instance below the cap, others making room for it if need be."""
    for instance in hosts[expert].tolist():
        if instance in tried:
            continue
        tried.add(instance)
        if len(serves[instance]) < cap:
            serves[instance].append(expert)
            return True
        for place, other in enumerate(serves[instance]):
            if _placed(other, hosts, serves, cap, tried):
                serves[instance][place] = expert
                return True
    return False
