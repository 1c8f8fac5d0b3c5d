"""Fused ring kernels by eq. 7, and what one of their hops takes.

On a node whose GPUs have one port each, a hop takes 1/(p-1) of the profile's own collective of the same bytes, start-up
included, and two directions are no quicker than one: both leave through that port. Where a node has islands inside
(NVLink pairs over PCIe) the rows of a library's collective say little of a ring that keeps neighbours together: its
slowest link sets the pace, and a GPU's two neighbours are behind different ports. A stated bandwidth is of a link that
each direction has to itself, as in eq. 7.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.papers.compass.costs.pairs import COLLECTIVE, Pair
from planner.papers.compass.costs.setting import Setting
from planner.papers.compass.derived import FusedRing
from planner.papers.compass.ring import fused_s, hop_s, shard_gemm_s
from profiles.errors import ProfileError


@dataclass(frozen=True)
class RingLink:
    """The slowest link of the ring, one direction; ``directions`` that run beside each other, 1 or 2."""

    bandwidth_bytes_per_s: float
    directions: int


def fused_seconds(pair: Pair, comm_s: float, gemm_s: float, ring: FusedRing, link: RingLink | None) -> dict[str, float]:
    """Seconds by kernel; of an all-gather or a reduce-scatter only. ``link`` None: a hop is a part of ``comm_s``.

    The shards take their part of the whole GEMM as it was priced, start-up included: a fused kernel is launched once.
    """
    if COLLECTIVE[pair.op] not in ("all_gather", "reduce_scatter"):
        return {}
    p = pair.ranks
    times: dict[str, float] = {}
    for kernel in ring.kernels:
        shard = shard_gemm_s(gemm_s, p, ring.slowdown(kernel), ring.tile_s)
        if link is None:
            hop = comm_s / (p - 1)
        else:
            directions = 1 if kernel == "single_ring" else link.directions
            hop = hop_s(pair.message_bytes, p, link.bandwidth_bytes_per_s, ring.hop_s, directions)
        times[kernel] = fused_s(p, shard, hop)
    return times


def ring_link(setting: Setting, ring: FusedRing) -> RingLink | None:
    """The stated link, or the cluster's around a group of neighbours where its node has islands; else None."""
    if ring.bandwidth_bytes_per_s is not None:
        return RingLink(ring.bandwidth_bytes_per_s, 2)
    p, cluster = setting.given.tp_size, setting.cluster
    sizes = [tier.gpus for tier in cluster.device_classes[0].tiers if tier.gpus is not None]
    islands = [size for size in sizes if 1 < size < cluster.gpus_per_node]
    if not islands:
        return None
    try:
        around = cluster.group_link(range(p)).bandwidth_bytes_per_s
    except ProfileError:
        return None
    return None if around is None else RingLink(around, 2 if min(islands) < p else 1)
