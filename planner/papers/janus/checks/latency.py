"""The check's own seconds of a layer (page, "Model", 2 to 7), for numbers or arrays of pools and batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.papers.janus.checks.offers import Offer
from planner.papers.janus.costs import ActivatedTable, Constant, TwoPhase, Way

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LayerSeconds:
    """Seconds of one layer by part, the experts activated on the busiest instance, and the two ways of sending.

    ``direct_s`` and ``multicast_s`` are what the ways differ in; both 0 for a constant.
    """

    attention_s: Floats
    moe_s: Floats
    comm_s: Floats
    a_max: Floats
    direct_s: Floats
    multicast_s: Floats

    @property
    def total_s(self) -> Floats:
        """Of the layer."""
        return self.attention_s + self.moe_s + self.comm_s


def layer_seconds(offer: Offer, n_a: ArrayLike, n_e: ArrayLike, batch: ArrayLike) -> LayerSeconds:
    """Of these pools at these batches [requests in flight], which are inside the grid."""
    n_a, n_e, batch = np.asarray(n_a, np.int64), np.asarray(n_e, np.int64), np.asarray(batch, np.float64)
    each = batch / n_a
    attention = offer.attention
    request_s = attention.per_request_s + attention.per_cached_token_s * offer.problem.context_tokens
    a_max = activated(offer, n_e, batch)
    direct_s, multicast_s, rest_s = _ways(offer, n_a, n_e, each)
    return LayerSeconds(
        attention_s=attention.floor_s + each * request_s
        if attention.combine == "sum"
        else np.maximum(attention.floor_s, each * request_s),
        moe_s=offer.moe.per_expert_s * a_max + offer.moe.base_s,
        comm_s=np.minimum(direct_s, multicast_s) + rest_s,
        a_max=a_max,
        direct_s=direct_s,
        multicast_s=multicast_s,
    )


def tpot_s(offer: Offer, n_a: ArrayLike, n_e: ArrayLike, batch: ArrayLike) -> Floats:
    """Seconds of an output token."""
    return offer.problem.num_layers * layer_seconds(offer, n_a, n_e, batch).total_s


def activated(offer: Offer, n_e: Ints, batch: Floats) -> Floats:
    """a_max: linear between the points of the grid."""
    a_max, grid = offer.a_max, offer.grid
    after = np.clip(np.searchsorted(grid, batch), 1, len(grid) - 1)
    share = (batch - grid[after - 1]) / (grid[after] - grid[after - 1])
    if isinstance(a_max, ActivatedTable):
        row = np.searchsorted(np.array(a_max.expert_instances), n_e, side="right") - 1
        low, high = offer.values[row, after - 1], offer.values[row, after]
    else:
        low, high = (_bound(offer, a_max.kind, n_e, grid[place]) for place in (after - 1, after))
    return np.asarray(low * (1 - share) + high * share)


def _bound(offer: Offer, kind: str, n_e: Ints, batch: Floats) -> Floats:
    E, K, C = offer.problem.num_experts, offer.problem.top_k, offer.slots
    chance = 1 - (1 - K / E) ** batch
    each = np.full(np.shape(n_e), float(C)) if kind == "printed_bound" else E / n_e
    variance, held = each * chance, np.full(np.shape(n_e), C)
    if kind == "binomial_bound":
        # What the fullest instance holds with one copy of each.
        variance, held = variance * (1 - chance), np.minimum(C, -(-E // n_e))
    raw = each * chance + np.sqrt(2 * variance * np.log(n_e)) + 1
    return np.asarray(np.minimum(np.minimum(held, K * batch), raw))


def _ways(offer: Offer, n_a: Ints, n_e: Ints, each: Floats) -> tuple[Floats, Floats, Floats]:
    """Seconds there directly, there by multicast, and of all else."""
    comm = offer.comm
    if isinstance(comm, Constant):
        none = np.zeros(np.broadcast_shapes(n_a.shape, n_e.shape, each.shape))
        return none, none, none + comm.time_s
    sharing = np.minimum(n_a, comm.gpus_per_node)
    payload = each * sharing * comm.bytes_per_request
    nodes = -(-n_e // comm.gpus_per_node)
    network_s = _seconds(comm.network, payload / lanes(comm, n_a, n_e))
    gather_s = np.where(sharing > 1, _seconds(comm.gather, payload), 0.0)
    rest_s = gather_s + _seconds(comm.reduce, payload) + network_s
    return nodes * network_s, network_s + _seconds(comm.multicast, payload), rest_s


def lanes(comm: TwoPhase, n_a: ArrayLike, n_e: ArrayLike) -> Ints:
    """Links of a node in use at once: each has an instance at both ends."""
    ends = np.minimum(np.minimum(n_a, n_e), comm.gpus_per_node)
    return np.asarray(np.minimum(ends, comm.links_per_node), dtype=np.int64)


def _seconds(way: Way, payload_bytes: Floats) -> Floats:
    return way.alpha_s + way.beta_s_per_byte * payload_bytes
