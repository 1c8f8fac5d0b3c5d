"""How many experts the busiest instance serves: windows of a trace, each balanced on a placement by AEBS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.papers.janus.experts.aebs import activated, hosts_of, largest_loads
from planner.papers.janus.experts.placement import Ints

MOST_WINDOWS = 256
"""Windows of one batch size and layer that are balanced; of more, so many evenly over the trace."""


@dataclass(frozen=True, eq=False)
class Windows:
    """``active`` bool [windows, E]: experts activated in each window, all batch sizes one after the other.

    ``counts`` are the windows of each size.
    """

    active: NDArray[np.bool_]
    counts: tuple[int, ...]


def windows_of(ids: NDArray[np.int32], experts: int, grid: Sequence[int]) -> Windows:
    """Consecutive windows of B tokens, from the first token on, for each B of a grid; what is left over is not used."""
    active, counts = [], []
    for size in grid:
        whole = len(ids) // size
        chosen = np.arange(whole) if whole <= MOST_WINDOWS else np.arange(MOST_WINDOWS) * whole // MOST_WINDOWS
        active.append(activated(ids, size, chosen * size, experts))
        counts.append(len(chosen))
    return Windows(np.concatenate(active), tuple(counts))


def row(windows: Windows, table: Ints, statistic: str) -> NDArray[np.float64]:
    """float64 [sizes]: the mean or the 95th percentile of a_max over the windows of each size."""
    experts = windows.active.shape[1]
    largest = largest_loads(windows.active, hosts_of(table, experts), len(table))
    parts = np.split(largest, np.cumsum(windows.counts)[:-1])
    return np.array([part.mean() if statistic == "mean" else np.percentile(part, 95) for part in parts])
