"""The amounts at which costs are priced: they cover the search box (no cost is extrapolated later)."""

from __future__ import annotations

import math

import numpy as np

from planner.papers.findep.setting import Floats, Setting

EVERY_SAMPLE = 1024
"""Up to so many samples every number of them is priced."""
POINTS_PER_OCTAVE = 4


def samples_of(setting: Setting) -> Floats:
    """Samples of a micro-batch, ascending from 1 to max_m_a: all of them, or a geometric grid of whole ones."""
    most = setting.search.max_m_a
    if most <= EVERY_SAMPLE:
        return np.arange(1.0, most + 1.0)
    grid = np.rint(np.geomspace(1.0, most, math.ceil(2 * POINTS_PER_OCTAVE * math.log2(most)) + 1))
    return np.asarray(np.unique(grid))


def tokens_of(setting: Setting) -> Floats:
    """Tokens of one expert in a chunk, (splits, points), over all that the box may ask (eq. 2).

    Rows ascend; they repeat their end where a split has fewer amounts than another.
    """
    search, given, experts = setting.search, setting.given, setting.model.experts
    copies = setting.attention_gpus[:, 0] * experts.top_k
    least = copies * max(1.0, given.tokens_per_sample / search.max_r2) / experts.count
    most = copies * given.tokens_per_sample * search.max_m_a / experts.count
    if search.token_rounding == "ceil":
        least, most = np.ceil(least), np.ceil(most)
    points = math.ceil(POINTS_PER_OCTAVE * float(np.log2(most / least).max())) + 1
    grid = np.geomspace(least, most, points, axis=1)
    # The ends are exact; between them six digits, because the last bits of a power differ between processors.
    rounded = np.array([[float(f"{value:.6g}") for value in row] for row in grid.tolist()])
    rounded = np.clip(rounded, least[:, None], most[:, None])
    rounded[:, 0], rounded[:, -1] = least, most
    return np.asarray(rounded)
