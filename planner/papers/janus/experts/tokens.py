"""The tokens of a traced layer, in the order they came; where only a distribution is known they are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.routing.compiled import routed_of
from planner.routing.document import Routing, ZipfRouting
from planner.routing.routed import Kept, Tokens, Uniform
from planner.routing.zipf import CHUNK_NUMBERS, draw

Ids = NDArray[np.int32]

DRAWN = 2**15
"""Tokens drawn of loads, whose sum says nothing of how many are wanted."""


@dataclass(frozen=True, eq=False)
class Traced:
    """``ids`` int32 [T, K], ascending and distinct in a row. ``measured``: a router chose them, nothing was drawn."""

    ids: Ids
    measured: bool


def traced(routing: Routing, kept: Kept, experts: int, top_k: int, seed: int, place: str) -> Traced:
    """The tokens of a routing, the same each time; ``seed`` is that of a draw that states none.

    ``place`` is the routing's path in the problem. Raises BadInputError if a file that it names was not read.
    """
    routed = routed_of(routing, kept, 1, experts, top_k, place)
    if isinstance(routed, Tokens):
        return Traced(routed.expert_ids, not isinstance(routing, ZipfRouting))
    recipe = ("drawn", routing, top_k, experts, seed)
    if recipe not in kept.made:
        if isinstance(routed, Uniform):
            kept.made[recipe] = draw(1, routed.tokens_per_rank, experts, top_k, 0.0, seed)
        else:
            ids = draw_by_load(routed.load, DRAWN, top_k, seed)
            kept.made[recipe] = Tokens(ids, np.zeros(len(ids), np.int32))
    return Traced(kept.made[recipe].expert_ids, measured=False)


def draw_by_load(load: NDArray[np.float64], count: int, top_k: int, seed: int) -> Ids:
    """int32 [count, K]: distinct experts, each in as many tokens as its load says, nearly.

    Pareto sampling: the K least of logit(u) - logit(p), u uniform and p an expert's share of the tokens, with the
    adjustment of Bondesson, Traat and Lundqvist (Scand. J. Stat. 33, 2006). Weights alone, as in Gumbel top-K, would
    draw frequent experts too seldom.
    """
    share = shares(load, top_k)
    spread = share * (1 - share)
    with np.errstate(divide="ignore"):
        shift = np.log1p(-share) - np.log(share)
    if spread.any():
        shift += spread * (share - 0.5) / spread.sum() ** 2
    generator = np.random.default_rng(seed)
    ids = np.empty((count, top_k), np.int32)
    rows = max(1, CHUNK_NUMBERS // len(load))
    for first in range(0, count, rows):
        keys = generator.logistic(size=(min(rows, count - first), len(load))) + shift
        chosen = np.argpartition(keys, top_k - 1, axis=1)[:, :top_k]
        ids[first : first + rows] = np.sort(chosen, axis=1)
    return ids


def shares(load: NDArray[np.float64], top_k: int) -> NDArray[np.float64]:
    """float64 [E]: the part of the tokens that choose each expert; they sum to K, and none is above 1.

    Loads that would be in more than every token are in every one, and the rest is shared by the others' loads.
    """
    share = np.zeros(len(load))
    rest = np.ones(len(load), bool)
    while True:
        left = top_k - np.count_nonzero(~rest)
        weight = np.where(rest, load, 0.0) if load[rest].sum() > 0 else rest.astype(np.float64)
        share[rest] = (left * weight / weight.sum())[rest] if rest.any() else 0.0
        above = rest & (share > 1)
        if not above.any():
            return share
        share[above] = 1.0
        rest &= ~above
