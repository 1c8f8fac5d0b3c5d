"""Seconds of kernels that move shards around a ring while they multiply (page, equation 7 and section 3.6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def shard_gemm_s(gemm_payload_s: float, tp_size: int, slowdown: float = 1.0, tile_s: float = 0.0) -> float:
    """g [s]: one rank's shard multiplied, ``slowdown`` being rho and ``tile_s`` a_tile."""
    return slowdown * gemm_payload_s / tp_size + tile_s


def hop_s(payload_bytes: float, tp_size: int, bandwidth_bytes_per_s: float, latency_s: float, directions: int) -> float:
    """c [s]: a shard's way to the next rank; with two ``directions`` half of it goes each way.

    ``bandwidth_bytes_per_s`` is that of the slowest link of the ring, in one direction.
    """
    return latency_s + payload_bytes / (directions * tp_size * bandwidth_bytes_per_s)


def fused_s(tp_size: int, shard_s: float, hop_s: float) -> float:
    """T_fused [s]: the local shard at once, or last, and p - 1 hops beside the other p - 1 shards (equation 7)."""
    return shard_s + (tp_size - 1) * max(shard_s, hop_s)


def ring_exchange_s(
    steps: ArrayLike,
    first_hop_s: ArrayLike,
    hop_s: ArrayLike,
    gemm_s: ArrayLike,
    slowdown: tuple[float, float] = (1, 1),
) -> NDArray[np.float64]:
    """T [s] of TransformerEngine's ring, ``slowdown`` of hop and GEMM while both run; broadcasts.

    p steps of one shard each, the first of which is there (no first hop), or (``aggregate``) p/2 of two shards, where
    one hop makes the first pair.
    """
    hop, gemm = np.asarray(hop_s), np.asarray(gemm_s)
    bound = np.maximum(slowdown[0] * hop, slowdown[1] * gemm)
    return np.asarray(first_hop_s + gemm + (np.asarray(steps) - 1) * bound)
