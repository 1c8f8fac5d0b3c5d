"""What no order of the tasks can beat (page equation 12)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.papers.findep.times import Times

Floats = NDArray[np.float64]


def chain_s(times: Times, r2: ArrayLike) -> Floats:
    """G: one micro-batch alone through a layer, t_a + t_x + t_e + t_y + (r2 - 1) Y [s]."""
    alone = times.attention_s + times.a2e_s + times.expert_s + times.e2a_s
    return np.asarray(alone + (np.asarray(r2) - 1) * times.slowest_s)


def least_makespan_s(times: Times, num_layers: int, r1: ArrayLike, r2: ArrayLike) -> Floats:
    """A lower bound on D [s]: each resource's work with the head and tail it cannot avoid, and one micro-batch's chain.

    The attention GPU: its last task is no s of the last layer, or the chain of the last a still follows; so all of a,
    the s of the layers before, and G - t_a after; or all of its own work. A link or the expert GPU: all n of its tasks,
    what leads to its first and what follows its last.
    """
    T, micro_batches = num_layers, np.asarray(r1, dtype=np.float64)
    n = T * micro_batches * np.asarray(r2, dtype=np.float64)
    a, s, x, e, y = times.attention_s, times.shared_s, times.a2e_s, times.expert_s, times.e2a_s
    G = chain_s(times, r2)
    return np.asarray(
        np.maximum.reduce(
            [
                T * micro_batches * a + (T - 1) * micro_batches * s + (G - a),
                T * micro_batches * (a + s),
                a + n * x + e + y,
                a + x + n * e + y,
                a + x + e + n * y,
                np.broadcast_to(T * np.maximum(G, a + s), np.broadcast_shapes(n.shape, G.shape)),
            ]
        )
    )
