"""What no placement of given copies is below, from how many instances two experts have to share."""

from __future__ import annotations

import math

import numpy as np

from planner.papers.janus.experts.placement import Floats, Ints

_ROUNDING = 1e-9


def least_coactivation(copies: Ints, slots: int, instances: int, together: Floats) -> float:
    """A lower bound on the largest I(g) where all slots are used.

    Expert e has R(e) (slots - 1) neighbours over its instances. It shares with f at least R(e) + R(f) - n instances and
    at most min(R(e), R(f)); the least its neighbours can weigh is a fractional knapsack. Half their sum over all e is
    what all instances have at least, and the largest has no less than the mean.
    """
    least = np.maximum(0, copies[:, None] + copies[None, :] - instances)
    most = np.minimum(copies[:, None], copies[None, :])
    np.fill_diagonal(least, 0)
    np.fill_diagonal(most, 0)
    order = np.argsort(together, axis=1, kind="stable")
    room = np.take_along_axis(most - least, order, axis=1)
    left = (copies * (slots - 1) - least.sum(axis=1))[:, None]
    filled = np.clip(left - (np.cumsum(room, axis=1) - room), 0, room)
    weights = np.take_along_axis(together, order, axis=1)
    total = float((together * least).sum() + (weights * filled).sum()) / 2
    mean = total / instances * (1 - _ROUNDING)
    whole = bool((together == np.floor(together)).all())
    return max(0.0, float(math.ceil(mean))) if whole else max(0.0, mean)
