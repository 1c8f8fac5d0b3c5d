"""Seconds of an output token as lines in the batch (page, "Model" 1-4, 7): all pairs of a search at once.

Everything but the activated experts is a line in B, or the larger or smaller of two, whose crossings are known. So
between the points of the batch grid and two kinks the time of an output token is a line in B too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.papers.janus.costs import Attention, Exchange, Experts, Limits, Memory, Prices, TwoPhase
from planner.papers.janus.problem import Rules

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Option:
    """One pair of devices with all that a sizing needs to know; ``device`` is None for the problem's own.

    ``grid`` [G] are batches; ``rows`` [R, G] the activated experts there, row r from ``row_instances`` [R] expert
    instances up to the next row's. ``places`` are the fields of the problem that its capacity and limits stand in.
    """

    device: str | None
    num_layers: int
    num_experts: int
    top_k: int
    slots: int
    slo_s: float
    context_tokens: float
    rules: Rules
    attention: Attention
    moe: Experts
    comm: Exchange
    memory: Memory | None
    limits: Limits
    prices: Prices | None
    memory_place: str
    limits_place: str
    grid: Floats
    rows: Floats
    row_instances: Ints

    @property
    def fewest_experts(self) -> int:
        """Expert instances that hold every expert once."""
        return -(-self.num_experts // self.slots)

    @property
    def largest_batch(self) -> float:
        """Requests in flight where the data end."""
        return float(self.grid[-1])

    @property
    def request_s(self) -> float:
        """Seconds of attention, in one layer, of a request of the instance's batch."""
        return self.attention.per_request_s + self.attention.per_cached_token_s * self.context_tokens

    @property
    def fixed_bytes(self) -> float:
        """W_a: bytes of an attention instance without a request."""
        if self.memory is None:
            return 0.0
        fixed = self.memory.attention_fixed_bytes
        return math.fsum(fixed.values()) if isinstance(fixed, dict) else fixed

    @property
    def expert_bytes(self) -> float | None:
        """Bytes of an expert instance, all slots filled; None where they are not stated."""
        if self.memory is None or self.memory.expert_bytes_per_slot is None:
            return None
        fixed = self.memory.expert_fixed_bytes or 0.0
        return self.slots * self.memory.expert_bytes_per_slot + (
            math.fsum(fixed.values()) if isinstance(fixed, dict) else fixed
        )

    @property
    def expert_capacity_bytes(self) -> float:
        """Memory of an expert instance."""
        if self.memory is None:
            return math.inf
        return self.memory.expert_capacity_bytes or self.memory.capacity_bytes

    @property
    def priced_ranks(self) -> int | None:
        """Ranks of the cluster that the exchange was priced in; None where it is stated."""
        return self.comm.priced_ranks if isinstance(self.comm, TwoPhase) else None

    @property
    def priced_in_one_node(self) -> bool:
        """Whether the exchange was priced in a cluster of one node: more nodes have other links."""
        ranks = self.priced_ranks
        return ranks is not None and isinstance(self.comm, TwoPhase) and ranks <= self.comm.gpus_per_node

    @property
    def request_bytes(self) -> float:
        """Bytes of a request on its attention instance."""
        if self.memory is None:
            return 0.0
        return self.context_tokens * self.memory.kv_bytes_per_token + self.memory.activation_bytes_per_request

    def objective(self, n_a: ArrayLike, n_e: ArrayLike) -> Floats:
        """What pools cost: GPUs, or their price for an hour. Broadcasts."""
        attention, expert = (
            (1.0, 1.0) if self.prices is None else (self.prices.attention_per_hour, self.prices.expert_per_hour)
        )
        return np.asarray(np.asarray(n_a) * attention + np.asarray(n_e) * expert, dtype=np.float64)


@dataclass(frozen=True)
class Pairs:
    """Pools ``n_a``, ``n_e`` [n] of one option, and the lines of each in its batch, per layer.

    Attention: max(floor, ``attention_slope`` B), or their sum. Exchange: the smaller of ``direct`` and ``relayed``,
    [2, n] of an intercept and a slope each. ``kinks`` [2, n] are the batches where either changes its side, infinite
    where none.
    """

    option: Option
    n_a: Ints
    n_e: Ints
    row: Ints
    attention_slope: Floats
    direct: Floats
    relayed: Floats
    kinks: Floats

    def __len__(self) -> int:
        return len(self.n_a)

    def take(self, chosen: Ints | Bools) -> Pairs:
        """Those chosen by place or mask."""
        return Pairs(
            self.option,
            self.n_a[chosen],
            self.n_e[chosen],
            self.row[chosen],
            self.attention_slope[chosen],
            self.direct[:, chosen],
            self.relayed[:, chosen],
            self.kinks[:, chosen],
        )


def pairs_of(option: Option, n_a: ArrayLike, n_e: ArrayLike) -> Pairs:
    """The lines of pools, broadcast against each other and laid flat. Each n_e has a row of the option's."""
    attention, experts = (np.ravel(each).astype(np.int64) for each in np.broadcast_arrays(n_a, n_e))
    row = np.searchsorted(option.row_instances, experts, side="right") - 1
    slope = option.request_s / attention
    direct, relayed = _exchange(option, attention, experts)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        busy = option.attention.floor_s / slope
        switch = (relayed[0] - direct[0]) / (direct[1] - relayed[1])
    kinks = np.stack([busy, switch])
    kinks[~((kinks > 1) & (kinks < option.largest_batch))] = np.inf
    return Pairs(option, attention, experts, row, slope, direct, relayed, kinks)


def _exchange(option: Option, n_a: Ints, n_e: Ints) -> tuple[Floats, Floats]:
    """Intercept and slope in the batch of both ways of sending, the way back included (4): [2, n] each."""
    comm = option.comm
    if not isinstance(comm, TwoPhase):
        same = np.stack([np.full(len(n_a), comm.time_s), np.zeros(len(n_a))])
        return same, same
    sources = np.minimum(n_a, comm.gpus_per_node)
    nodes = -(-n_e // comm.gpus_per_node)
    payload = comm.bytes_per_request * sources / n_a
    # As many links as there are, and as instances at both of their ends.
    lanes = np.minimum(np.minimum(sources, comm.links_per_node), np.minimum(n_e, comm.gpus_per_node))
    gather, network, multicast, reduce = (
        np.array([[way.alpha_s], [way.beta_s_per_byte]]) * np.stack([np.ones(len(n_a)), sent])
        for way, sent in (
            (comm.gather, payload),
            (comm.network, payload / lanes),
            (comm.multicast, payload),
            (comm.reduce, payload),
        )
    )
    common = (sources > 1) * gather + reduce + network
    return common + nodes * network, common + network + multicast


def activated(pairs: Pairs, batch: Floats) -> Floats:
    """a_max [n]: experts activated on the busiest instance, linear between the points of the grid."""
    grid, rows = pairs.option.grid, pairs.option.rows
    place = np.clip(np.searchsorted(grid, batch, side="right") - 1, 0, len(grid) - 2)
    low, high = rows[pairs.row, place], rows[pairs.row, place + 1]
    share = (batch - grid[place]) / (grid[place + 1] - grid[place])
    return np.asarray(low + (high - low) * share)


def attention_s(pairs: Pairs, batch: Floats) -> Floats:
    """T_attn [n] of a layer (2)."""
    floor_s, requests_s = pairs.option.attention.floor_s, pairs.attention_slope * batch
    return floor_s + requests_s if pairs.option.attention.combine == "sum" else np.maximum(floor_s, requests_s)


def moe_s(pairs: Pairs, batch: Floats) -> Floats:
    """T_moe [n] of a layer (3)."""
    return pairs.option.moe.per_expert_s * activated(pairs, batch) + pairs.option.moe.base_s


def comm_s(pairs: Pairs, batch: Floats) -> tuple[Floats, Ints]:
    """T_comm [n] of a layer (4), and which way: 1 direct, 2 one-to-one and multicast, 0 a constant."""
    direct = pairs.direct[0] + pairs.direct[1] * batch
    relayed = pairs.relayed[0] + pairs.relayed[1] * batch
    case = (
        np.where(direct <= relayed * (1 + EQUAL), 1, 2)
        if isinstance(pairs.option.comm, TwoPhase)
        else np.zeros(len(pairs))
    )
    return np.minimum(direct, relayed), case.astype(np.int64)


def tpot_s(pairs: Pairs, batch: Floats) -> Floats:
    """Seconds [n] of an output token with ``batch`` [n] requests in flight (1); never falls with the batch."""
    layer_s = attention_s(pairs, batch) + moe_s(pairs, batch) + comm_s(pairs, batch)[0]
    return np.asarray(pairs.option.num_layers * layer_s)


def attention_bytes(pairs: Pairs, batch: Floats) -> Floats:
    """Bytes [n] of an attention instance: whole requests on the busiest one (6)."""
    requests = np.ceil(batch / pairs.n_a - WHOLE)
    return np.asarray(pairs.option.fixed_bytes + requests * pairs.option.request_bytes)


EQUAL = 1e-12
"""Two ways of sending this close, relatively, take equally long: rounding made the difference."""
WHOLE = 1e-9
"""How far above a whole number of requests still counts as that number."""
