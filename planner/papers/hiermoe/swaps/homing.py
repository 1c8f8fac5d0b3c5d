"""Fewer moves: experts that return to the rank they have now, for nothing, or until a budget is kept."""

from __future__ import annotations

import numpy as np

from planner.papers.hiermoe.exchange.time import TIE
from planner.papers.hiermoe.swaps.descent import BATCH, Walk, best_smooth
from planner.papers.hiermoe.swaps.moving_placement import MovingPlacement
from planner.papers.hiermoe.swaps.token_index import Indices


def come_home(placement: MovingPlacement) -> None:
    """Swaps that return more experts than they take away and do not raise the objective (5), while there are any."""
    bar = placement.plain * (1 + TIE)
    returned = True
    while returned:
        returned = False
        pairs = np.argwhere(np.triu(placement.more_moved() < 0))
        for start in range(0, len(pairs), BATCH):
            part = pairs[start : start + BATCH]
            plain, _ = placement.after(part[:, 0], part[:, 1])
            for r, f in part[plain <= bar].tolist():
                if placement.returning(r, f) and placement.after(*_one(r, f))[0][0] <= bar:
                    placement.swap(r, f)
                    returned = True


def back_within(placement: MovingPlacement, walk: Walk, max_moved: int) -> None:
    """The best smooth swap that returns experts, until at most ``max_moved`` are away."""
    while placement.moved > max_moved:
        step = best_smooth(placement, placement.more_moved() < 0)
        if step is None:
            # Cannot be: an expert away from home leaves its place there to one that is away too.
            raise RuntimeError("no expert can return")
        walk.make(placement, step.r, step.f)


def _one(r: int, f: int) -> tuple[Indices, Indices]:
    return np.array([r]), np.array([f])
