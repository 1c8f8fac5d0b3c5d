"""Non-causal attention in waves of thread blocks: the reference that its rows are compared with, one fit a head
dimension.

    t = launch + block q + ceil(q) (wave + tile run) + share q run + bytes

with q = heads x ceil(L / M) / multiprocessors blocks of M query rows a multiprocessor and run = ceil(L / 64) key tiles.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from profiles.least_squares import fit_positive

Floats = npt.NDArray[np.float64]
Waves = dict[int, tuple[int, Floats]]
"""By head dimension: rows of a block, and the six coefficients in the order of the formula."""

BLOCK_ROWS = (64, 128, 192, 256)
KEY_TILE = 64
_START = np.array([8e-6, 1e-7, 1e-6, 5e-7, 1e-7, 1e-14])


def fit_waves(axes: Mapping[str, Floats], seconds: Floats, multiprocessors: int) -> Waves:
    """Block size and coefficients that come closest to the rows, for each head dimension."""
    found: Waves = {}
    for head_dim in np.unique(axes["head_dim"]).tolist():
        own = axes["head_dim"] == head_dim
        some, times = {axis: column[own] for axis, column in axes.items()}, seconds[own]
        fits = []
        for rows in BLOCK_ROWS:
            terms = _terms(some, rows, multiprocessors)
            coefficients = fit_positive(lambda c, terms=terms: terms @ c, _START, times, steps=30)  # type: ignore[misc]
            error = np.abs(np.log(terms @ coefficients / times))
            fits.append((float(np.mean(np.minimum(error, 0.5))), rows, coefficients))
        _, rows, coefficients = min(fits, key=lambda fit: fit[:2])
        found[int(head_dim)] = rows, coefficients
    return found


def wave_seconds(axes: Mapping[str, Floats], waves: Waves, multiprocessors: int) -> Floats:
    """Seconds by the formula; every head dimension must have been fitted."""
    seconds = np.empty(len(axes["length"]))
    for head_dim, (rows, coefficients) in waves.items():
        own = axes["head_dim"] == head_dim
        some = {axis: column[own] for axis, column in axes.items()}
        seconds[own] = _terms(some, rows, multiprocessors) @ coefficients
    return seconds


def _terms(axes: Mapping[str, Floats], rows: int, multiprocessors: int) -> Floats:
    heads, length = axes["heads"], axes["length"]
    blocks, run = heads * np.ceil(length / rows) / multiprocessors, np.ceil(length / KEY_TILE)
    waves = np.ceil(blocks)
    moved = heads * length * axes["head_dim"]
    return np.stack([np.ones_like(blocks), blocks, waves, waves * run, blocks * run, moved], axis=1)
