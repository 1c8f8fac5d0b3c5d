"""The fast engine (page 4.4): cut, place anchors, pack fillers, balance pairs; no solver and no clock.

Budgets are iterations. The cheap baselines are candidates, so that no plan is worse than one of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from planner.papers.zellige.anchor_search import Budget, place_anchors
from planner.papers.zellige.anchors import Anchors
from planner.papers.zellige.balance import balance_pairs
from planner.papers.zellige.fillers import Floats, Rule, pack_fillers
from planner.papers.zellige.instance import Instance, Mode, Piece, Placement, loads, num_splits

TOLERANCE = 1e-4
"""Relative distance from the lower bound at which searching for better anchors stops paying."""
ITERATIONS = 300
"""Ruin-and-recreate steps at effort 1."""
GRAIN = 0.04
"""Share of the lower bound above which a sequence is too coarse to be a filler, whatever the cut says."""
CLOSE = 2e-3
"""Distance from the bound above which splitting short sequences is tried beside keeping them whole."""
SPLIT_GAIN = 1e-3
"""How much shorter, relative, the step must get for short sequences to be split: the paper's own slack (page 4.2)."""
SAVING = 1e-3
"""Relative work that splitting a filler must save to be worth its collectives."""
FILLING = 1e-3
"""A filling this close to a divisible one needs no other rule."""


class Found(NamedTuple):
    """A feasible placement and its makespan in seconds."""

    placement: Placement
    makespan_s: float


def solve_fast(
    instance: Instance, bound_s: float, *, effort: float = 1.0, seed: int = 0, gap: float = 0.0
) -> Found | None:
    """The best placement found, None when every rung of the ladder ran out of memory (page 4.7).

    ``bound_s`` is any valid lower bound; the closer, the sooner the search may stop. Short sequences are kept whole
    unless splitting some of them, which costs collectives, makes the step clearly shorter.
    """
    budget = Budget(max(1, round(ITERATIONS * effort)), max(TOLERANCE, gap), seed)
    small = _small(instance, bound_s)
    cut = log_price_cut(instance)
    fillers = {index: mode for index, mode in small.items() if index < cut}
    found = _climb(instance, fillers, small, max(bound_s, _mean_s(instance, small)), budget)
    if not _has_cheaper_split(instance, small) or (found and found.makespan_s <= bound_s * (1 + CLOSE)):
        return found
    split = _climb(instance, cheapest_modes(instance, fillers), {}, bound_s, budget)
    if found is None or split is None:
        return found or split
    return split if split.makespan_s < found.makespan_s * (1 - SPLIT_GAIN) else found


def log_price_cut(instance: Instance) -> int:
    """Kinds before this index are fillers, the rest anchors (page 4.1). Kinds without a whole mode are anchors.

    The index k* minimises SSE(ln w_1..w_k) + SSE(ln w_k+1..w_B); ties go to the smallest; one kind has no anchors.
    """
    kinds = instance.kinds
    if len(kinds) == 1:
        return 1
    logs = np.log([kind.whole_s for kind in kinds])
    return int(np.argmin(_split_errors(logs))) + 1


def _small(instance: Instance, bound_s: float) -> dict[int, Mode]:
    """The whole mode of every kind that is fine-grained beside the makespan."""
    whole = {index: kind.whole for index, kind in enumerate(instance.kinds)}
    return {index: mode for index, mode in whole.items() if mode is not None and mode.time_s <= GRAIN * bound_s}


def _mean_s(instance: Instance, whole: Mapping[int, Mode]) -> float:
    """Mean rank time in the cheapest modes with some kinds whole: no such placement beats it."""
    works = (
        kind.count * (whole[index].work_s if index in whole else min(mode.work_s for mode in kind.modes))
        for index, kind in enumerate(instance.kinds)
    )
    return sum(works) / instance.num_ranks


def _has_cheaper_split(instance: Instance, small: Mapping[int, Mode]) -> bool:
    return any(
        mode.work_s < whole.work_s * (1 - SAVING)
        for index, whole in small.items()
        for mode in instance.kinds[index].modes
    )


def _split_errors(logs: Floats) -> Floats:
    """Sum of squared errors of both parts for every cut, from prefix sums about the overall mean."""
    centred = logs - logs.mean()
    size = np.arange(1, len(logs))
    first, square = np.cumsum(centred), np.cumsum(centred**2)
    left = square[:-1] - first[:-1] ** 2 / size
    right = (square[-1] - square[:-1]) - (first[-1] - first[:-1]) ** 2 / (len(logs) - size)
    errors: Floats = np.round(left + right, 12)
    return errors


def cheapest_modes(instance: Instance, fillers: Mapping[int, Mode]) -> dict[int, Mode]:
    """Fillers that need clearly less work when split, in their cheapest mode that tiles all ranks; others whole."""
    modes = dict(fillers)
    for index, whole in fillers.items():
        tiling = (mode for mode in instance.kinds[index].modes if instance.tiling[mode.config])
        cheapest = min(tiling, key=lambda mode: (mode.work_s, mode.degree, mode.config), default=whole)
        if cheapest.work_s < whole.work_s * (1 - SAVING):
            modes[index] = cheapest
    return modes


def _climb(
    instance: Instance, fillers: Mapping[int, Mode], whole: Mapping[int, Mode], bound_s: float, budget: Budget
) -> Found | None:
    """The failure ladder: promote the largest filler kind that found no memory to the anchors, and start again.

    Kinds in ``whole`` stay whole among the anchors too, but for those that were promoted.
    """
    fillers, whole = dict(fillers), dict(whole)
    while True:
        attempt = _attempt(instance, fillers, whole, bound_s, budget)
        if isinstance(attempt, Found):
            return attempt
        if attempt is None:
            return None
        del fillers[attempt]
        whole.pop(attempt, None)


def _attempt(
    instance: Instance, fillers: Mapping[int, Mode], whole: Mapping[int, Mode], bound_s: float, budget: Budget
) -> Found | int | None:
    """A placement, or the filler kind to promote, or None when the anchors alone exceed memory."""
    anchors = Anchors(instance, [index for index in range(len(instance.kinds)) if index not in fillers], fillers, whole)
    placed = place_anchors(anchors, bound_s, budget)
    if placed is None:
        return max(fillers, default=None)
    best: Found | None = None
    short = -1
    level_s = anchors.ledger.worth()
    seated: Floats = np.array(loads(instance, placed))
    for rule in Rule:
        ledger = seated.copy()
        filled, left = pack_fillers(instance, fillers, ledger, rule=rule, level_s=level_s)
        if left:
            short = max(short, *left)
            continue
        best = better(instance, best, finish(instance, placed | filled, ledger, bound_s))
        if best is not None and best.makespan_s <= level_s * (1 + FILLING):
            break
    return best or short


def finish(instance: Instance, placed: Placement, ledger: Floats, bound_s: float) -> Found:
    """Balance pairs over the whole sequences, anchors included, that may run on any rank."""
    final: dict[Piece, int] = {}
    whole_counts: dict[int, list[int]] = {}
    for piece, count in placed.items():
        mode = instance.kinds[piece.kind].modes[piece.mode]
        if mode == instance.kinds[piece.kind].whole and instance.tiling[mode.config]:
            row = whole_counts.setdefault(piece.kind, [0] * instance.num_ranks)
            row[piece.ranks[0]] += count
        else:
            final[piece] = count
    balance_pairs(instance, whole_counts, ledger, bound_s, rounds=8 * instance.num_ranks)
    for kind, row in whole_counts.items():
        whole = instance.kinds[kind].whole
        assert whole is not None
        number = instance.kinds[kind].modes.index(whole)
        final |= {Piece(kind, number, (rank,)): count for rank, count in enumerate(row) if count}
    time, _ = loads(instance, final)
    return Found(final, max(time))


def better(instance: Instance, one: Found | None, other: Found | None) -> Found | None:
    """The smaller makespan, then fewer splits (5); makespans within 1e-12 relative are equal."""
    if one is None or other is None:
        return one or other
    if math.isclose(one.makespan_s, other.makespan_s, rel_tol=1e-12):
        fewer = num_splits(instance, other.placement) < num_splits(instance, one.placement)
        return other if fewer else one
    return other if other.makespan_s < one.makespan_s else one
