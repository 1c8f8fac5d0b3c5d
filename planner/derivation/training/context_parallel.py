"""Seconds of the ring that context parallelism passes keys and values around."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.derivation.account import Floats
from planner.derivation.node_hop import node_hop
from planner.derivation.training.collectives import tiered_part
from planner.derivation.training.cuts import Cuts
from planner.derivation.training.device import Device
from planner.derivation.training.parts import Part
from planner.derivation.training.reached import Missing
from planner.memory.messages import context_hop_bytes
from profiles.geometry.attention import Attention, LatentAttention
from profiles.priced import MODELLED, STATED, Priced
from profiles.pricing import Extrapolate


def ring_parts(device: Device, attention: Attention, cuts: Cuts, missing: Missing) -> tuple[Part, Part]:
    """c - 1 hops of a rank's keys and values forward, of these and their gradients backward, behind nothing yet.

    Latent attention passes them on expanded.
    """
    if isinstance(attention, LatentAttention):
        heads, width = attention.heads, (attention.nope + attention.rope + attention.v) / 2
    else:
        heads, width = attention.kv_heads, float(attention.head_dim)
    block = np.asarray(context_hop_bytes(heads, width, cuts.tokens, cuts.tp, device.element_bytes))
    return _ring(device, block, cuts, missing), _ring(device, 2 * block, cuts, missing)


def _ring(device: Device, block: Floats, cuts: Cuts, missing: Missing) -> Part:
    def inside(message: Floats, ranks: Floats, extrapolate: Extrapolate) -> Priced:
        return node_hop(device.profile, message, ranks, extrapolate)

    def between(message: Floats, ranks: Floats) -> Priced:
        return device.cluster.network_collective("send_recv", message, ranks)

    crosses = cuts.tp * cuts.cp > device.node
    hop = tiered_part(device, "cp", "all_gather", block, cuts.cp, crosses, missing, inside, between)
    source = np.where(hop.source == STATED, STATED, MODELLED).astype(np.int8)
    return replace(hop, seconds=(cuts.cp - 1) * hop.seconds, source=source)
