"""The rule of `copies` for one expert at a time, for a search that changes one (page, "Replicas").

The copy that shares the deepest level with the source; among equally deep ones, slots ascending, number source modulo
how many they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.instance import Case

Ints = NDArray[np.int64]


class Nearest:
    """The copy rule of one machine."""

    def __init__(self, case: Case) -> None:
        self.case = case
        rank = np.arange(case.G)
        sizes = [case.G // groups for groups in case.U] + [1]
        self._depth = sum(
            ((rank[:, None] // size == rank // size).astype(np.int64) for size in sizes),
            np.zeros((case.G, case.G), dtype=np.int64),
        )
        self._rank = rank

    def serving(self, slots: Ints) -> Ints:
        """int64 [G]: of an expert's slots, ascending, the one that serves each source rank."""
        if len(slots) == 1:
            return np.full(self.case.G, slots[0])
        depth = self._depth[:, slots // self.case.slots]
        nearest = depth == depth.max(axis=1, keepdims=True)
        wanted = self._rank % nearest.sum(axis=1) + 1
        chosen: Ints = slots[np.argmax(nearest & (np.cumsum(nearest, axis=1) == wanted[:, None]), axis=1)]
        return chosen
