"""Non-causal attention at a head dimension that was never measured, composed from rows that were.

Two rules, both only under `extrapolate="roofline"` and always tagged modelled:

1. The device has encoder rows at another head dimension d0: t(L, d) = t(L, d0) x causal(L, d) / causal(L, d0), the
   causal prefill rows carrying the effect of the head dimension. Without such a pair: t(L, d0) x max(1, d / d0).
2. The device has no encoder rows: t(L, d) = causal(sqrt(2) L, d), the causal length with the same FLOPs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profiles.families import FAMILIES
from profiles.repeats import merge_repeats
from profiles.table import CostTable

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ENCODER = FAMILIES["encoder_attention"]


def composed_table(head_dim: int, encoder: CostTable | None, causal: CostTable | None) -> CostTable | None:
    """An encoder table at `head_dim` by the rules above, non-decreasing in heads and in length; None if impossible."""
    if encoder is not None:
        return _from_encoder(head_dim, encoder, causal)
    return _from_causal(head_dim, causal) if causal is not None else None


def _from_encoder(head_dim: int, encoder: CostTable, causal: CostTable | None) -> CostTable:
    measured = sorted(group[0] for group in encoder.grids)
    paired = [d for d in measured if causal is not None and {(d, 1), (head_dim, 1)} <= set(causal.grids)]
    below = [d for d in paired or measured if d <= head_dim]
    near = max(below) if below else min(paired or measured)
    rows = encoder.columns["head_dim"] == near
    heads, length, seconds = encoder.columns["heads"][rows], encoder.columns["length"][rows], encoder.seconds[rows]
    if paired and causal is not None:
        factor = _causal_seconds(causal, head_dim, heads, length) / _causal_seconds(causal, near, heads, length)
    else:
        factor = np.full(len(seconds), max(1.0, head_dim / near))
    return _table(head_dim, heads, length, seconds * factor)


def _causal_seconds(causal: CostTable, head_dim: int, heads: Ints, length: Ints) -> Floats:
    size = len(heads)
    query = {
        "head_dim": np.full(size, float(head_dim)),
        "queries_per_kv_head": np.ones(size),
        "batch": np.ones(size),
        "heads": heads.astype(np.float64),
        "length": length.astype(np.float64),
    }
    return causal.look_up(causal.clamp(query)).seconds


def _from_causal(head_dim: int, causal: CostTable) -> CostTable | None:
    columns = causal.columns
    rows = (columns["head_dim"] == head_dim) & (columns["queries_per_kv_head"] == 1)
    if not rows.any():
        return None
    heads = columns["batch"][rows] * columns["heads"][rows]
    length = np.maximum(1, np.rint(columns["length"][rows] / np.sqrt(2.0))).astype(np.int64)
    return _table(head_dim, heads, length, causal.seconds[rows])


def lattice(head_dim: int, encoder: CostTable) -> CostTable:
    """Measured rows at `head_dim`, completed to all pairs of heads and length, non-decreasing in both."""
    rows = encoder.columns["head_dim"] == head_dim
    columns = {axis: column[rows] for axis, column in encoder.columns.items()}
    return _table(head_dim, columns["heads"], columns["length"], encoder.seconds[rows])


def _table(head_dim: int, heads: Ints, length: Ints, seconds: Floats) -> CostTable:
    """Rows made unique (median), all pairs of heads and length filled, and prices made to rise along both axes.

    A hole would let a curve of few heads pass above one of many, and a longer cross-attention become cheaper. Holes
    between rows are interpolated along the length; beyond a curve's last row time grows with the area, before its
    first row it stays.
    """
    usable = np.isfinite(seconds)
    columns = {"head_dim": np.full(int(usable.sum()), head_dim), "heads": heads[usable], "length": length[usable]}
    columns, merged, _ = merge_repeats(columns, seconds[usable], _ENCODER.axes)
    counts, lengths = np.unique(columns["heads"]), np.unique(columns["length"])
    filled = np.empty((len(counts), len(lengths)))
    for place, count in enumerate(counts):
        row = columns["heads"] == count
        own = columns["length"][row]
        filled[place] = np.exp(np.interp(np.log(lengths), np.log(own), np.log(merged[row])))
        filled[place] *= np.maximum(1.0, lengths / own[-1]) ** 2
    # The largest price of less work and the smallest of more work both rise; between them no spike carries the day.
    below = np.maximum.accumulate(np.maximum.accumulate(filled, axis=0), axis=1)
    above = np.minimum.accumulate(np.minimum.accumulate(filled[::-1, ::-1], axis=0), axis=1)[::-1, ::-1]
    rising = np.sqrt(below * above)
    grid = np.meshgrid(counts, lengths, indexing="ij")
    axes = {"head_dim": np.full(rising.size, head_dim), "heads": grid[0].ravel(), "length": grid[1].ravel()}
    return CostTable(_ENCODER, axes, rising.ravel())
