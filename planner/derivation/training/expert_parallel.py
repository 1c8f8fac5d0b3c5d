"""Seconds of sending tokens to the ranks of their experts and their results back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.derivation.account import Floats
from planner.derivation.training.collectives import NETWORK, between_nodes, collective_part
from planner.derivation.training.cuts import Cuts, Ints
from planner.derivation.training.device import Device
from planner.derivation.training.parts import Part
from planner.derivation.training.reached import Missing
from planner.memory.messages import expert_message_bytes
from profiles.geometry.feed_forward import Experts
from profiles.priced import MODELLED


def exchange_parts(device: Device, hidden: int, experts: Experts, cuts: Cuts, missing: Missing) -> list[Part]:
    """Dispatch and combine, and what ranks that share experts gather and scatter; the backward pays the same.

    Of the e ranks of a group, u apart, so many are in a node; their share goes over the island at the same time as the
    rest goes over the network, and the slower counts. Copies are sent once an expert: routing limited to few nodes, and
    copies sent once a node, are left out.
    """
    message = np.asarray(expert_message_bytes(hidden, experts.top_k, cuts.own_tokens, device.element_bytes))
    near = np.where(cuts.ep * cuts.etp > device.node, np.maximum(device.node // cuts.etp, 1), cuts.ep)
    island = collective_part(
        device, "ep", "all_to_all", message * near / cuts.ep, near, np.zeros(len(cuts), dtype=bool), missing
    )
    network = _network(device, message, near, cuts, missing)
    over_network = network.seconds > island.seconds
    sent = [
        replace(island, seconds=np.where(over_network, 0.0, 2 * island.seconds)),
        replace(network, seconds=np.where(over_network, 2 * network.seconds, 0.0)),
    ]
    shared = [
        collective_part(device, "ep", operation, message * cuts.etp, cuts.etp, cuts.etp > device.node, missing)
        for operation in ("all_gather", "reduce_scatter")
    ]
    return [*sent, *shared]


def _network(device: Device, message: Floats, near: Ints, cuts: Cuts, missing: Missing) -> Part:
    """What goes to the ranks of other nodes, one after the other."""
    far = cuts.ep - near
    rows = np.flatnonzero(far)
    ranks = far[rows].astype(np.float64) + 1.0
    share = message[rows] * far[rows] / cuts.ep[rows]
    # An all-to-all of n ranks sends (n - 1)/n of its message in n - 1 steps: those of the far ranks.
    seconds, source = np.zeros(len(cuts)), np.full(len(cuts), MODELLED, dtype=np.int8)
    # A cluster of one node has no link to ask.
    if len(rows):
        price = between_nodes(
            missing, rows, lambda: device.cluster.network_collective("all_to_all", share * ranks / (ranks - 1.0), ranks)
        )
        seconds[rows], source[rows] = price.seconds, price.source
    return Part("ep", NETWORK, seconds, source)
