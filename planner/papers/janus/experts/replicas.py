"""How many copies each expert has (page, rule 8)."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray


def replica_counts(load: NDArray[np.float64], instances: int, slots: int) -> NDArray[np.int64]:
    """int64 [E]: R(e), one copy each and then one more of the largest load a copy until all slots are used.

    No expert has more copies than there are instances; the lowest id comes first among equals. There must be a slot
    for every expert.
    """
    E = len(load)
    if slots >= E:
        return np.full(E, instances, np.int64)
    copies = [1] * E
    if instances > 1:
        loads = load.tolist()
        queue = [(-share, expert) for expert, share in enumerate(loads)]
        heapq.heapify(queue)
        for _ in range(instances * slots - E):
            expert = queue[0][1]
            copies[expert] += 1
            if copies[expert] == instances:
                heapq.heappop(queue)
            else:
                heapq.heapreplace(queue, (-loads[expert] / copies[expert], expert))
    return np.array(copies, np.int64)
