"""Dual feasible functions (page eq. 14): monotone f on [0, 1] with Σx <= 1 ⇒ Σf(x) <= 1."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planner.papers.zellige.catalogue import Floats

STEPS = (1, 2, 3, 4, 5, 6)
"""k of u_k(x) = x if (k+1)x is an integer, else floor((k+1)x)/k."""

CUTS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
"""e of f_e(x) = 1 if x > 1-e, 0 if x < e, else x."""

NUM_FUNCTIONS = 1 + len(STEPS) + len(CUTS)


def evaluate(x: Floats, members: Iterable[int]) -> Floats:
    """Values of the chosen members of the family (0 is id, then u_k, then f_e), stacked on a new first axis."""
    members = list(members)
    values = np.empty((len(members), *x.shape))
    for row, member in enumerate(members):
        if member == 0:
            values[row] = x
        elif member <= len(STEPS):
            values[row] = step(x, STEPS[member - 1])
        else:
            values[row] = cut(x, CUTS[member - 1 - len(STEPS)])
    return values


def step(x: Floats, k: int) -> Floats:
    """u_k: counts the pieces of which at most k fit."""
    scaled = (k + 1) * x
    floor = np.floor(scaled)
    return np.where(scaled == floor, x, floor / k)


def cut(x: Floats, e: float) -> Floats:
    """f_e: a piece longer than 1-e shares its rank with nothing of size e or more."""
    return np.where(x > 1 - e, 1.0, np.where(x < e, 0.0, x))
