"""The collectives of a d-dimensional exchange (page, "The model"): Inter-1 .. Inter-(d-1), Intra-(d-1); or one flat."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.instance import Case

HopKind = Literal["flat", "inter", "intra"]


@dataclass(frozen=True)
class Hop:
    """One collective: ``participants`` ranks pad to the largest count over ``groups`` destinations and their holders.

    Rank r lies in destination group r // (G / groups); a token of source s is held by class s mod ``classes``.
    """

    kind: HopKind
    level: int
    groups: int
    participants: int
    classes: int


def hops_of(case: Case, d: int) -> tuple[Hop, ...]:
    """The hops of dimension d = 1..D, in the order they run."""
    G = case.G
    if d == 1:
        return (Hop("flat", 0, G, G, G),)
    inter = [
        Hop("inter", level, groups, groups // above, G // above)
        for level, (above, groups) in enumerate(pairwise(case.U[:d]), 1)
    ]
    last = G // case.U[d - 1]
    return (*inter, Hop("intra", d - 1, G, last, last))


def ranks_of_slots(case: Case) -> NDArray[np.int64]:
    """int64 [P]: the rank of each slot."""
    return np.arange(case.P, dtype=np.int64) // case.slots
