"""Non-causal attention that is not a measured row: a smooth, economical surface over heads x length and length.

    t = overhead + [ (4 d (heads L + r0)(L + l0) / F_d)^4 + (bytes / B)^4 ]^(1/4)

The achieved FLOP/s of this formula never falls when heads x L or L grows, so a split by heads, by queries or by keys
is never cheaper in total than the whole. Its shape is the table's fitted roofline. Its level F_d is robust: the median
over all long rows of one head dimension, so that no single slow or lucky row reaches another shape. Three rules:

1. Rows at d exist: their own level.
2. Rows at another head dimension d0: F_d = F_d0 x causal F_d / causal F_d0, the levels of the causal prefill rows;
   without such a pair t grows by max(1, d / d0).
3. No encoder rows: t(L, d) = causal(sqrt(2) L, d), the causal length with the same FLOPs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profiles.roofline import modelled_seconds
from profiles.table import CostTable

Floats = npt.NDArray[np.float64]

LONG_TOKENS = 8192
"""Rows at least this long (or the longest there are) set the level: launch and ramp-up hardly matter there."""
WIDE_ROWS = 2**17
"""And with at least this many query rows, heads x length (or the most there are), that fill the device."""


@dataclass(frozen=True)
class Fitted:
    """A table of encoder or causal rows with the coefficients of its roofline."""

    table: CostTable
    coefficients: Mapping[str, float]
    element_bytes: float

    def has(self, head_dim: int) -> bool:
        """Whether rows exist at this head dimension (causal: with as many KV heads as heads)."""
        group = (head_dim,) if self.table.family.name == "encoder_attention" else (head_dim, 1)
        return group in self.table.grids

    def flop_per_s(self, head_dim: int) -> float:
        """The fitted rate, corrected by the median of the long rows at `head_dim`."""
        columns = self.table.columns
        chosen = columns["head_dim"] == head_dim
        if "queries_per_kv_head" in columns:
            chosen &= columns["queries_per_kv_head"] == 1
        chosen &= columns["length"] >= min(LONG_TOKENS, int(columns["length"][chosen].max()))
        rows = columns["length"] * columns["heads"] * columns.get("batch", np.int64(1))
        chosen &= rows >= min(WIDE_ROWS, int(rows[chosen].max()))
        axes = {axis: column[chosen].astype(np.float64) for axis, column in columns.items()}
        model = modelled_seconds(self.table.family.name, axes, self.coefficients, self.element_bytes)
        return float(self.coefficients["flop_per_s"] * np.median(model / self.table.seconds[chosen]))


def surface(head_dim: int, encoder: Fitted | None, causal: Fitted | None) -> dict[str, float] | None:
    """Encoder coefficients at `head_dim` by the rules above; None if the rows for it are missing."""
    if encoder is not None:
        return {**encoder.coefficients, "flop_per_s": _level(head_dim, encoder, causal)}
    if causal is None or not causal.has(head_dim):
        return None
    root = float(np.sqrt(2.0))
    found = {**causal.coefficients, "flop_per_s": causal.flop_per_s(head_dim)}
    return {**found, **{name: found[name] / root for name in ("bytes_per_s", "rows_0", "length_0")}}


def _level(head_dim: int, encoder: Fitted, causal: Fitted | None) -> float:
    measured = sorted(group[0] for group in encoder.table.grids)
    if head_dim in measured:
        return encoder.flop_per_s(head_dim)
    if causal is not None and causal.has(head_dim):
        paired = [d for d in measured if causal.has(d)]
        if paired:
            near = _nearest(head_dim, paired)
            return encoder.flop_per_s(near) * causal.flop_per_s(head_dim) / causal.flop_per_s(near)
    near = _nearest(head_dim, measured)
    return encoder.flop_per_s(near) * min(1.0, head_dim / near)


def _nearest(head_dim: int, measured: list[int]) -> int:
    """The largest measured head dimension below, or the smallest of all."""
    return max((d for d in measured if d <= head_dim), default=min(measured))


def surface_seconds(axes: Mapping[str, Floats], surfaces: Mapping[int, Mapping[str, float]], size: float) -> Floats:
    """Seconds of flat queries from the surface of each one's head dimension; `size` is bytes an element."""
    seconds = np.empty(axes["length"].size)
    for head_dim in np.unique(axes["head_dim"]).tolist():
        own = axes["head_dim"] == head_dim
        some = {axis: value[own] for axis, value in axes.items()}
        seconds[own] = modelled_seconds("encoder_attention", some, surfaces[int(head_dim)], size)
    return seconds


def measured_box(table: CostTable, head_dim: int) -> CostTable:
    """The corners of what was measured at `head_dim`: a shape between them is modelled without extrapolating."""
    grid = table.grids[head_dim,]
    heads, length = np.meshgrid(np.unique(grid.bounds(0)), np.unique(grid.along_bounds), indexing="ij")
    axes = {"head_dim": np.full(heads.size, head_dim), "heads": heads.ravel(), "length": length.ravel()}
    return CostTable(table.family, axes, np.ones(heads.size))
