"""No pools that come before the stated ones carry the demand: every one of them is tried.

B_1 = max(1, lambda x TPOT(1)), B_2 = lambda x TPOT(B_1), ... rise to the smallest fixed point. Pools are out as soon as
one of these breaks the SLO, the memory or the grid; the few that stay are solved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from planner.papers.janus.checks.latency import Ints, tpot_s
from planner.papers.janus.checks.offers import TOLERANCE, Offer
from planner.papers.janus.checks.operating_point import smallest_batch
from planner.papers.janus.checks.pools import requests_of

CHUNK = 2**15
"""Pairs looked at together."""
EVERY = 2**20
"""Pairs up to which every single one is tried."""
STEPS = 60
"""Batches tried before the pairs that are left are solved."""
FEW = 2
"""Pairs that are solved rather than tried further."""
TIE = 1e-10
"""Relative difference of two TPOTs that are certainly a tie; certainly none is three times TOLERANCE."""


@dataclass(frozen=True)
class Ranked:
    """Pools with what ranks them."""

    objective: float
    total: int
    tpot_s: float
    n_a: int
    device: str | None

    @property
    def n_e(self) -> int:
        """Expert instances."""
        return self.total - self.n_a

    @property
    def pools(self) -> tuple[int, int, str | None]:
        """What tells them from others."""
        return self.n_a, self.n_e, self.device

    def certainly_before(self, other: Ranked) -> bool:
        """Smallest objective, total, TPOT, n_a, device; not where rounding could rank them the other way."""
        if abs(self.objective - other.objective) > TOLERANCE * max(self.objective, other.objective):
            return self.objective < other.objective
        if self.total != other.total:
            return self.total < other.total
        apart, largest = abs(self.tpot_s - other.tpot_s), max(self.tpot_s, other.tpot_s)
        if apart > 3 * TOLERANCE * largest:
            return self.tpot_s < other.tpot_s
        return apart <= TIE * largest and (self.n_a, self.device or "") < (other.n_a, other.device or "")


def carriers(offers: Iterable[Offer], demand: float, low: float, high: float) -> Iterator[Ranked]:
    """Pools with an objective from ``low`` to ``high`` that certainly carry the demand, cheapest first.

    Pools on the very edge of SLO, memory or grid, where rounding decides, are left out. Of more pairs than EVERY only
    those are tried that, if they do not carry the demand, show it of all.
    """
    kept = [
        (offer.objective(int(n_a), int(n_e)), offer, int(n_a), int(n_e))
        for offer in offers
        if offer.slots_fit
        for some in _pairs(offer, low, high)
        for n_a, n_e in zip(*_tried(offer, demand, *some), strict=True)
    ]
    for objective, offer, n_a, n_e in sorted(kept, key=lambda pair: pair[0]):
        if (reached_s := _carries(offer, demand, n_a, n_e)) is not None:
            yield Ranked(objective, n_a + n_e, reached_s, n_a, offer.device)


def _pairs(offer: Offer, low: float, high: float) -> Iterator[tuple[Ints, Ints]]:
    """The pairs that the problem allows with an objective from ``low`` to ``high``, some at a time."""
    limits, prices = offer.limits, offer.prices
    of_attention, of_expert = (1.0, 1.0) if prices is None else (prices.attention_per_hour, prices.expert_per_hour)
    n_e = np.arange(offer.fewest_experts, min(limits.max_expert_instances, limits.max_total_instances - 1) + 1)
    step = np.ones_like(n_e) if offer.problem.launcher_rules == "none" else n_e
    affordable = np.minimum((high - n_e * of_expert) / of_attention, limits.max_attention_instances)
    most = np.minimum(np.floor(affordable).astype(np.int64), limits.max_total_instances - n_e) // step
    needed = np.clip((low - n_e * of_expert) / of_attention, 1, limits.max_attention_instances + 1)
    least = -(-np.ceil(needed).astype(np.int64) // step)
    number = np.maximum(most - least + 1, 0)
    if number.sum() > EVERY:
        yield from _telling(n_e, step, least, most)
        return
    ends = np.cumsum(number)
    part = 0
    while part < len(n_e):
        until = max(part + 1, int(np.searchsorted(ends, ends[part] - number[part] + CHUNK, side="right")))
        some = slice(part, until)
        experts, first = np.repeat(n_e[some], number[some]), np.repeat(ends[some] - number[some], number[some])
        k = np.repeat(least[some], number[some]) + np.arange(len(experts)) + (ends[part] - number[part]) - first
        yield k * np.repeat(step[some], number[some]), experts
        part = until


def _telling(n_e: Ints, step: Ints, least: Ints, most: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Of each n_e the most attention instances, which carry what fewer do, and 1, which alone gathers nothing.

    From two on, one more leaves nothing longer: requests and payload of an instance fall, the rest stays.
    """
    some = most >= least
    yield (most * step)[some], n_e[some]
    alone = some & (least * step == 1)
    yield np.ones_like(n_e[alone]), n_e[alone]


def _tried(offer: Offer, demand: float, n_a: Ints, n_e: Ints) -> tuple[Ints, Ints]:
    slo_s = offer.problem.slo_tpot_s * (1 + TOLERANCE) ** 2
    largest = float(offer.largest_batch)
    capacity = np.inf if offer.memory is None else offer.memory.capacity_bytes * (1 + TOLERANCE)
    batch = np.ones(len(n_a))
    for _ in range(STEPS):
        if len(n_a) <= FEW:
            break
        reached_s = tpot_s(offer, n_a, n_e, batch)
        requests = np.ceil(batch / n_a - 1e-9)
        batch = np.maximum(1.0, demand * reached_s)
        stay = (reached_s <= slo_s) & (batch <= largest * (1 + TOLERANCE))
        stay &= offer.fixed_bytes + requests * offer.request_bytes <= capacity
        n_a, n_e, batch = n_a[stay], n_e[stay], np.minimum(batch[stay], largest)
    return n_a, n_e


def _carries(offer: Offer, demand: float, n_a: int, n_e: int) -> float | None:
    """TPOT [s] of pools that carry the demand with no doubt of rounding."""
    batch = smallest_batch(offer, n_a, n_e, demand, margin=TIE)
    if batch is None:
        return None
    reached_s = float(tpot_s(offer, n_a, n_e, batch))
    if reached_s > offer.problem.slo_tpot_s * (1 + TOLERANCE - TIE):
        return None
    if offer.memory is not None:
        used = offer.bytes_of(requests_of(batch * (1 + TOLERANCE), n_a))
        if used > offer.memory.capacity_bytes * (1 - TIE):
            return None
    return reached_s
