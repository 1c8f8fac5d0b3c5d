"""The simpler rules for pools that papers publish (page, "Baselines"), each as a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.errors import LimitError
from planner.papers.janus import fixed_point, model
from planner.papers.janus.frontier import Family, carries, family, slots_fit
from planner.papers.janus.model import Floats, Ints, Option, Pairs
from planner.papers.janus.search import TIE, Choice

MOST_PAIRS = 2**21
"""Pairs of pools, over all demands, among which balance is looked for."""
FIRST = 2**12
"""Pairs looked at first, together; doubled each time."""
TOGETHER = 2**18
"""Pairs looked at together at most, but all of one n_e."""


def balanced(options: Sequence[Option], demands: Sequence[float]) -> list[Choice | None]:
    """MegaScale-Infer's: for each n_e the n_a at which attention and experts take most nearly the same time.

    Of n_a that balance equally well it is the smallest; of all these pools the cheapest that carry the demand, None
    where none does. Raises LimitError (too_many_pairs).
    """
    found, left = [], MOST_PAIRS
    for demand in demands:
        chosen: list[Choice] = []
        for option in options:
            looked_at, carrying = _balanced(option, demand, left)
            left -= looked_at
            chosen += carrying
        found.append(_best(chosen))
    return found


def _balanced(option: Option, demand: float, budget: int) -> tuple[int, list[Choice]]:
    """Pairs looked at, and pools found, by n_e up to where a single attention instance beside it costs too much."""
    pools, found, cheapest = family(option), list[Choice](), np.inf
    looked_at, size = 0, FIRST
    while len(pools.n_e) and option.objective(pools.step[0], pools.n_e[0]) <= cheapest * (1 + TIE):
        number = max(1, int(np.searchsorted(np.cumsum(pools.most), size)))
        some, pools = pools.take(np.arange(len(pools.n_e)) < number), pools.take(np.arange(len(pools.n_e)) >= number)
        looked_at, size = looked_at + int(some.most.sum()), min(2 * size, TOGETHER)
        if looked_at > budget:
            message = f"balance is looked for among {MOST_PAIRS:,} pairs of pools at most"
            raise LimitError(message, code="too_many_pairs", where="limits")
        found += _carrying(option, _nearest(some, demand), some.n_e, demand)
        cheapest = min([cheapest, *(choice.objective for choice in found)])
    return looked_at, found


def _nearest(pools: Family, demand: float) -> Ints:
    """n_a of each n_e [M] at which the two times at the operating point differ least; 0 where it has none."""
    ends = np.cumsum(pools.most)
    k = np.arange(ends[-1]) - np.repeat(ends - pools.most, pools.most) + 1
    pairs = model.pairs_of(pools.option, k * np.repeat(pools.step, pools.most), np.repeat(pools.n_e, pools.most))
    batch = fixed_point.batches(pairs, demand)
    met = ~np.isnan(batch)
    batch = np.where(met, batch, 1.0)
    apart = np.abs(model.attention_s(pairs, batch) - model.moe_s(pairs, batch))
    apart = np.where(met, apart, np.inf)
    starts = ends - pools.most
    least = np.minimum.reduceat(apart, starts)
    tied = np.isfinite(apart) & (apart <= np.repeat(least, pools.most) * (1 + TIE))
    n_a = np.minimum.reduceat(np.where(tied, pairs.n_a, np.iinfo(np.int64).max), starts)
    return np.where(np.isfinite(least), n_a, 0)


@dataclass(frozen=True)
class Ratio:
    """Attention to expert instances, as stated."""

    attention: int
    experts: int


def in_ratio(options: Sequence[Option], demands: Sequence[float], ratio: Ratio) -> list[Choice | None]:
    """xDeepServe's: for each demand the cheapest of pools (k x, k y) that carries it; None where none does."""
    found: list[list[Choice]] = [[] for _ in demands]
    for option in options:
        n_a, n_e = _of_ratio(option, ratio)
        for chosen, demand in zip(found, demands, strict=True):
            chosen += _carrying(option, n_a, n_e, demand)
    return [_best(chosen) for chosen in found]


def _of_ratio(option: Option, ratio: Ratio) -> tuple[Ints, Ints]:
    limits = option.limits
    most = min(
        limits.max_attention_instances // ratio.attention,
        limits.max_expert_instances // ratio.experts,
        limits.max_total_instances // (ratio.attention + ratio.experts),
    )
    k = np.arange(1, most + 1, dtype=np.int64)
    n_a, n_e = k * ratio.attention, k * ratio.experts
    allowed = (n_e >= option.fewest_experts) & slots_fit(option)
    if option.rules == "vllm_afd":
        allowed &= (n_a >= n_e) & (n_a % n_e == 0)
    return n_a[allowed], n_e[allowed]


def at(option: Option, n_a: int, n_e: int, demands: Sequence[float]) -> list[Choice | None]:
    """Given pools for each demand, where they carry it."""
    rate = np.array(demands, dtype=np.float64)
    pairs = model.pairs_of(option, np.full(len(rate), n_a), n_e)
    carried = carries(pairs, rate)
    chosen = iter(_choices(pairs.take(carried), rate[carried]))
    return [next(chosen) if each else None for each in carried]


def _carrying(option: Option, n_a: Ints, n_e: Ints, demand: float) -> list[Choice]:
    """Those of pools [n] that carry the demand; an n_a of 0 is none."""
    some = n_a > 0
    pairs = model.pairs_of(option, n_a[some], n_e[some])
    pairs = pairs.take(carries(pairs, np.full(len(pairs), demand)))
    return _choices(pairs, np.full(len(pairs), demand))


def _choices(pairs: Pairs, demand: Floats) -> list[Choice]:
    batch = fixed_point.batches(pairs, demand)
    objective = pairs.option.objective(pairs.n_a, pairs.n_e)
    columns = (pairs.n_a, pairs.n_e, objective, batch, model.tpot_s(pairs, batch))
    return [Choice(pairs.option, *row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _best(found: list[Choice]) -> Choice | None:
    """By the tie rule of the search."""
    amounts: tuple[Callable[[Choice], float], ...] = (
        lambda choice: choice.objective,
        lambda choice: choice.n_a + choice.n_e,
        lambda choice: choice.tpot_s,
    )
    for amount in amounts:
        least = min(map(amount, found), default=0.0)
        found = [choice for choice in found if amount(choice) <= least * (1 + TIE)]
    return min(found, key=lambda choice: (choice.n_a, choice.option.device or ""), default=None)
