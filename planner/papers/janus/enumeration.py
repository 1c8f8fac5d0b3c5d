"""The search that assumes nothing of a falling TPOT: all pools by rising cost (page, "Algorithm": sizing)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.errors import LimitError
from planner.papers.janus import model
from planner.papers.janus.frontier import carries, family
from planner.papers.janus.model import Floats, Ints, Option
from planner.papers.janus.search import Candidates, Choice

MOST_PAIRS = 2**23
"""Pools of all options together."""
FIRST = 4096
"""Pools looked at before looking whether any carries the demand; doubled each time."""
BEYOND = 1e-8
"""How much above the last cost wanted ties may lie, relatively."""


def pairs_to_look_at(options: Sequence[Option]) -> int:
    """Pools that limits and launcher rules allow."""
    return sum(int(family(option).most.sum()) for option in options)


def enumerated(options: Sequence[Option], demand: float, count: int = 1) -> list[Choice]:
    """What `search.cheapest` gives for one demand, each pair looked at for itself. Raises LimitError (too_large)."""
    if (pairs := pairs_to_look_at(options)) > MOST_PAIRS:
        message = f"{pairs:,} pairs of pools are too many to look at each; {MOST_PAIRS:,} at most"
        raise LimitError(message, code="enumeration_too_large", where="limits")
    which, n_a, n_e, objective = _all_pairs(options)
    order = np.argsort(objective, kind="stable")
    carried: list[Ints] = []
    met, start, size = 0, 0, FIRST
    while start < len(order):
        if met >= count and objective[order[start]] > np.sort(objective[np.concatenate(carried)])[count - 1] * (
            1 + BEYOND
        ):
            break
        part = order[start : start + size]
        for index, option in enumerate(options):
            mine = part[which[part] == index]
            pools = model.pairs_of(option, n_a[mine], n_e[mine])
            carried.append(mine[carries(pools, np.full(len(mine), demand))])
            met += len(carried[-1])
        start, size = start + size, 2 * size
    found = np.sort(np.concatenate(carried)) if carried else np.zeros(0, dtype=np.int64)
    mine = [found[which[found] == index] for index in range(len(options))]
    some = Candidates.from_pools(
        options, np.array([demand]), [n_a[places][None, :] for places in mine], [n_e[places] for places in mine]
    )
    return some.picked(count)[0]


def _all_pairs(options: Sequence[Option]) -> tuple[Ints, Ints, Ints, Floats]:
    """Of every pair, laid flat: place of the option, n_a, n_e, objective."""
    which, n_a, n_e, objective = [], [], [], []
    for index, option in enumerate(options):
        pools = family(option)
        experts = np.repeat(pools.n_e, pools.most)
        before = np.repeat(np.cumsum(pools.most) - pools.most, pools.most)
        attention = (np.arange(len(experts)) - before + 1) * np.repeat(pools.step, pools.most)
        which.append(np.full(len(experts), index))
        n_a.append(attention)
        n_e.append(experts)
        objective.append(option.objective(attention, experts))
    return np.concatenate(which), np.concatenate(n_a), np.concatenate(n_e), np.concatenate(objective)
