"""Seconds of kernels that move shards around a ring while they multiply (page, equation 7 and section 3.6)."""

from __future__ import annotations


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


def ring_exchange_pairs_s(tp_size: int, hop_of_one_s: float, hop_of_two_s: float, gemm_of_two_s: float) -> float:
    """T [s] of p/2 steps of two shards each, ``aggregate`` of TransformerEngine; p is even."""
    return hop_of_one_s + gemm_of_two_s + (tp_size // 2 - 1) * max(gemm_of_two_s, hop_of_two_s)
