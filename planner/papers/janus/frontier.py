"""Which pools carry a demand (page, "Algorithm"): for every number of experts, the fewest attention instances.

From two attention instances on, one more never slows a token: attention (2) and the payload (4) of a batch only fall,
the links that carry it never get fewer, the gathering is there already, nothing else depends on n_a. So TPOT at a
batch, the smallest fixed point, the TPOT and the memory there never rise with n_a >= 2, pools that carry a demand still
do with more attention instances, and bisection finds the fewest. One attention instance alone sends without gathering
and is looked at apart. Launcher rules only choose among the n_a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.papers.janus import fixed_point, model
from planner.papers.janus.model import Bools, Floats, Ints, Option, Pairs

ROUNDING = 1e-9
"""Relative excess of the SLO, or of memory, that still passes."""
SLACK = 1e-6
"""How much more than a known cost is still looked at, relatively: more than ties and rounding."""
SAMPLE = 24
"""Numbers of experts looked at first."""


@dataclass(frozen=True)
class Family:
    """Pools that limits and launcher rules allow: for each ``n_e`` [M] the n_a = k ``step``, k from 1 to ``most``."""

    option: Option
    n_e: Ints
    step: Ints
    most: Ints

    def take(self, chosen: Ints | Bools) -> Family:
        """Of some n_e alone, by place or mask."""
        return Family(self.option, self.n_e[chosen], self.step[chosen], self.most[chosen])

    def sample(self) -> Family:
        """A few n_e from the fewest to the most, each so many times the one before."""
        if not len(self.n_e):
            return self
        wanted = np.geomspace(self.n_e[0], self.n_e[-1], SAMPLE)
        return self.take(np.unique(np.searchsorted(self.n_e, wanted).clip(max=len(self.n_e) - 1)))

    def within(self, cost: Floats) -> Ints:
        """The most k of each n_e whose pools cost no more than each of ``cost`` [D]; 0 or less where none [D, M]."""
        attention = self.option.objective(self.step, 0)
        spare = cost[:, None] * (1 + SLACK) - self.option.objective(0, self.n_e)
        with np.errstate(over="ignore"):
            return np.asarray(np.minimum(np.floor(spare / attention), self.most).astype(np.int64))


def family(option: Option) -> Family:
    """All allowed pools of an option; an n_e without any n_a is left out. None where slots do not fit an instance."""
    limits = option.limits
    most_experts = limits.max_expert_instances if slots_fit(option) else 0
    n_e = np.arange(option.fewest_experts, most_experts + 1, dtype=np.int64)
    step = n_e if option.rules == "vllm_afd" else np.ones_like(n_e)
    most = np.minimum(limits.max_attention_instances, limits.max_total_instances - n_e) // step
    return Family(option, n_e, step, most).take(most >= 1)


@dataclass(frozen=True)
class Frontier:
    """Of a family, by demand: whether k = 1 carries it (``alone`` [D, M]), and the ``least`` k >= 2 that does [D, M].

    Every k above does too, up to ``most`` [D, M]; ``least`` is past it where none does.
    """

    family: Family
    most: Ints
    alone: Bools
    least: Ints

    def choices(self, count: int) -> Ints:
        """The ``count`` fewest n_a of each n_e that carry each demand, ascending [D, M, count]; 0 for those missing."""
        one = self.alone[:, :, None]
        place = np.arange(count)
        k = np.where(one & (place == 0), 1, self.least[:, :, None] + place - one)
        return np.asarray(np.where(k <= self.most[:, :, None], k * self.family.step[:, None], 0))


def frontier(pools: Family, demands: Floats, cost: Floats | None = None) -> Frontier:
    """The frontier of a family for each demand [D], of pools that cost no more than ``cost`` [D] alone."""
    limit = np.full(len(demands), np.inf) if cost is None else cost
    most = pools.within(limit)
    wanted = np.flatnonzero((most >= 1).any(axis=0))
    pools, most = pools.take(wanted), most[:, wanted]
    shape = most.shape
    demand = np.repeat(demands, shape[1])
    n_e, step = (np.tile(each, shape[0]) for each in (pools.n_e, pools.step))
    last = most.ravel()

    def carried(k: Ints, some: Ints) -> Bools:
        return carries(model.pairs_of(pools.option, k * step[some], n_e[some]), demand[some])

    alone = np.zeros(len(n_e), dtype=np.bool_)
    some = np.flatnonzero(last >= 1)
    alone[some] = carried(np.ones_like(some), some)
    low, high = np.full_like(n_e, 2), np.maximum(last, 1) + 1
    some = np.flatnonzero(last >= 2)
    at_last = carried(last[some], some)
    high[some[at_last]] -= 1
    low[some[~at_last]] = high[some[~at_last]]
    while len(left := np.flatnonzero(low < high)):
        middle = (low[left] + high[left]) // 2
        enough = carried(middle, left)
        high[left[enough]] = middle[enough]
        low[left[~enough]] = middle[~enough] + 1
    return Frontier(pools, most, alone.reshape(shape), low.reshape(shape))


def carries(pairs: Pairs, demand: Floats) -> Bools:
    """Whether pools [n] carry a demand [n] within SLO and memory."""
    batch = operating_batches(pairs, demand)
    met = ~np.isnan(batch)
    batch = np.where(met, batch, 1.0)
    return met & (model.tpot_s(pairs, batch) <= longest_s(pairs.option)) & fits(pairs, batch)


def operating_batches(pairs: Pairs, demand: Floats) -> Floats:
    """The batches [n] at the fixed point; NaN where it is past the data or surely misses the SLO."""
    # A fixed point above one request has TPOT = B / demand. What is near the limit is left to the TPOT itself.
    return fixed_point.batches(pairs, demand, demand * longest_s(pairs.option) * (1 + ROUNDING))


def longest_s(option: Option) -> float:
    """The TPOT allowed [s], the SLO met exactly included."""
    return option.slo_s * (1 + ROUNDING)


def slots_fit(option: Option) -> bool:
    """Whether the slots of an expert instance have the memory."""
    held = option.expert_bytes
    return held is None or held <= option.expert_capacity_bytes * (1 + ROUNDING)


def fits(pairs: Pairs, batch: Floats) -> Bools:
    """Whether an attention instance has the memory (6)."""
    memory = pairs.option.memory
    if memory is None:
        return np.ones(len(pairs), dtype=np.bool_)
    return np.asarray(model.attention_bytes(pairs, batch) <= memory.capacity_bytes * (1 + ROUNDING))
