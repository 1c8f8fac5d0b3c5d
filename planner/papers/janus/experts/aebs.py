"""Which copy serves each activated expert (page, rule 10, AEBS): every instance finds the same by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def hosts_of(table: Ints, experts: int) -> list[Ints]:
    """The instances that hold each expert, ascending, for a table [n, slots]."""
    instance = np.repeat(np.arange(len(table)), table.shape[1])
    order = np.lexsort((instance, table.ravel()))
    bounds = np.cumsum(np.bincount(table.ravel(), minlength=experts))[:-1]
    return np.split(instance[order], bounds)


def activated(ids: NDArray[np.int32], size: int, starts: Ints, experts: int) -> NDArray[np.bool_]:
    """bool [windows, E]: the experts that ``size`` consecutive tokens of ids [T, K] from each start activate."""
    found = np.zeros((len(starts), experts), bool)
    for row, start in zip(found, starts.tolist(), strict=True):
        row[ids[start : start + size].ravel()] = True
    return found


def instance_loads(active: NDArray[np.bool_], hosts: list[Ints], instances: int) -> Ints:
    """int64 [batches, n]: distinct experts that each instance serves in each batch of ``active`` [batches, E]."""
    single = np.array([len(of_expert) == 1 for of_expert in hosts])
    only = np.zeros((len(hosts), instances), np.float32)
    for expert in np.flatnonzero(single).tolist():
        only[expert, hosts[expert][0]] = 1.0
    loads: Ints = np.rint(active.astype(np.float32) @ only).astype(np.int64)
    asked = active.any(axis=0) & ~single
    for expert in np.flatnonzero(asked).tolist():
        batches, of_expert = np.flatnonzero(active[:, expert]), hosts[expert]
        least = of_expert[loads[batches[:, None], of_expert].argmin(axis=1)]
        loads[batches, least] += 1
    return loads


def largest_loads(active: NDArray[np.bool_], hosts: list[Ints], instances: int) -> Ints:
    """int64 [batches]: a_max of each batch."""
    largest: Ints = instance_loads(active, hosts, instances).max(axis=1)
    return largest
