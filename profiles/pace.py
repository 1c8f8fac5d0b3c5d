"""How seconds move between two measured rows: in steps, as tiles of work and waves of thread blocks fill a device.

Between neighbours along a curve, log seconds are linear in

    u(x) = sum of weight x log cost(x)

over costs that never fall as the work grows: the size itself, the size padded to a tile, whole waves of tiles on all
multiprocessors, and, for attention, waves times the run of key tiles. With the size alone this is log-log
interpolation. The size always counts a little, so u rises strictly: a price stays between its two rows, meets them
exactly and never falls with more work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from profiles.families import COLLECTIVES, Family

Floats = npt.NDArray[np.float64]
Axes = Mapping[str, Floats]
Cost = Callable[[Axes, float], Floats]
Weights = Mapping[str, float]

SIZE = "size"
PLAIN: Weights = {SIZE: 1.0}
"""Log-log interpolation."""
LEAST_SIZE = 0.02


def _padded(axis: str, tile: float) -> Cost:
    return lambda axes, _multiprocessors: np.asarray(np.ceil(axes[axis] / tile))


def _next_power(axis: str) -> Cost:
    return lambda axes, _multiprocessors: np.exp2(np.ceil(np.log2(np.maximum(axes[axis], 16.0)) - 1e-9))


def _product_waves(rows: float, columns: float) -> Cost:
    def cost(axes: Axes, multiprocessors: float) -> Floats:
        tiles = np.ceil(axes["m"] / rows) * np.ceil(axes["n"] / columns)
        return np.asarray(np.ceil(tiles / multiprocessors))

    return cost


def _attention_waves(rows: float, keys: float, soft: bool) -> Cost:
    """Waves of blocks of `rows` query rows, each a run of key tiles long; soft: the last wave is as full as it is."""

    def cost(axes: Axes, multiprocessors: float) -> Floats:
        heads, group = axes["heads"] * axes.get("batch", np.float64(1.0)), axes.get("queries_per_kv_head", 1.0)
        length = axes["length"]
        blocks = heads / group * np.ceil(length * group / rows) / multiprocessors
        return np.asarray((np.maximum(blocks, 1.0) if soft else np.ceil(blocks)) * np.ceil(length / keys))

    return cost


def _causal_span(rows: float, launch: float) -> Cost:
    """The longer of one block and the mean load of causal attention, and `launch` key tiles' worth of overhead."""

    def cost(axes: Axes, multiprocessors: float) -> Floats:
        group, length = axes["queries_per_kv_head"], axes["length"]
        blocks = axes["batch"] * axes["heads"] / group * np.ceil(length * group / rows) / multiprocessors
        run = np.ceil(length / 64.0)
        return np.asarray(np.maximum(run, blocks * (run + 1.0) / 2.0) + launch)

    return cost


def _decode_run(keys: float, launch: float) -> Cost:
    """Key tiles of all KV heads spread over the multiprocessors, and `launch` key tiles' worth of overhead."""

    def cost(axes: Axes, multiprocessors: float) -> Floats:
        blocks = axes["batch"] * axes["heads"] / axes["queries_per_kv_head"] / multiprocessors
        return np.asarray(np.maximum(blocks, 1.0 / 16.0) * np.ceil(axes["kv_length"] / keys) + launch)

    return cost


def _launched(launch_bytes: float) -> Cost:
    """The message and `launch_bytes` worth of latency."""
    return lambda axes, _multiprocessors: np.asarray(axes["message_bytes"] + launch_bytes)


_ATTENTION: dict[str, Cost] = {
    **{f"rows_{rows}": _padded("length", rows) for rows in (64, 128, 192, 256)},
    **{f"waves_{rows}": _attention_waves(rows, 64, False) for rows in (64, 128, 192, 256)},
    **{f"blocks_{rows}": _attention_waves(rows, 64, True) for rows in (64, 128, 192, 256)},
}
_PREFILL: dict[str, Cost] = {
    **_ATTENTION,
    **{f"span_{rows}_{launch}": _causal_span(rows, launch) for rows in (64, 128, 256) for launch in (4, 16, 64)},
}
_DECODE: dict[str, Cost] = {
    f"run_{keys}_{launch}": _decode_run(keys, launch) for keys in (64, 128, 256) for launch in (0, 4, 16, 64)
}

COSTS: dict[str, dict[str, Cost]] = {
    "gemm": {
        **{f"rows_{rows}": _padded("m", rows) for rows in (16, 64, 128, 256)},
        "next_power": _next_power("m"),
        **{
            f"waves_{rows}x{columns}": _product_waves(rows, columns)
            for rows, columns in ((64, 64), (128, 128), (128, 256), (256, 128))
        },
    },
    "encoder_attention": _ATTENTION,
    "prefill_attention": _PREFILL,
    "decode_attention": _DECODE,
    **{
        operation: {f"launch_{kib}k": _launched(1024.0 * kib) for kib in (16, 64, 256, 1024, 4096)}
        for operation in COLLECTIVES
    },
}


def known_costs(family: str, multiprocessors: int | None) -> dict[str, Cost]:
    """The costs of a family; those that count waves need the device's number of multiprocessors."""
    costs = COSTS.get(family, {})
    waves = ("waves", "blocks", "span", "run")
    return {name: cost for name, cost in costs.items() if multiprocessors or not name.startswith(waves)}


@dataclass(frozen=True)
class Pacing:
    """The pace of one table's curves."""

    family: Family
    weights: Weights = field(default_factory=lambda: PLAIN)
    multiprocessors: int | None = None

    @property
    def plain(self) -> bool:
        """Whether the size alone counts."""
        return set(self.weights) == {SIZE}

    def of(self, axes: Axes) -> Floats:
        """u at `axes`."""
        return log_pace(self.family, self.weights, axes, self.multiprocessors)


def log_pace(family: Family, weights: Weights, axes: Axes, multiprocessors: int | None) -> Floats:
    """u at `axes` (float64 arrays that broadcast)."""
    total = np.zeros(())
    for name, weight in weights.items():
        cost = axes[family.along] if name == SIZE else COSTS[family.name][name](axes, float(multiprocessors or 1))
        total = total + weight * np.log(cost)
    return np.asarray(total)
