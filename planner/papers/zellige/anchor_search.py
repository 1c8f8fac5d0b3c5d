"""The search for a good anchor placement: construct for several targets, then ruin and recreate."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from planner.papers.zellige.anchors import Anchors, Choice, Seat
from planner.papers.zellige.instance import Piece

TARGETS = (1.0, 1.001, 1.003, 1.01, 1.03, 1.06, 1.15, 1.4)
"""Makespans to aim at, as multiples of the lower bound (page 4.4)."""
AMBITION = 0.8
"""How far below the best makespan the target lies, as a share of the way to the bound."""
PATIENCE = 25
"""Fruitless steps after which the target is moved back towards what was reached."""
STALL = (16, 160)
"""Steps without a better makespan after which the search ends, fewest and most: the bound is often out of reach."""
STALL_GAP = 1.6e-2
"""Relative distance from the bound that is worth the most such steps; a smaller one is worth fewer."""
FAR = 3e-3
"""Relative distance from the bound above which one anchor of each kind is tried in each of its modes, and whole
windows of ranks are seated anew."""
VARIED = 3000
"""Anchors seated in all such trials."""
WINDOW = 12
"""Anchors lifted at most with the split one that a window is about."""
DETOUR = (1.1, 0.3)
"""A step that makes the excess worse by at most this factor is taken with this probability."""


class Budget(NamedTuple):
    """What a search may spend: ruin-and-recreate steps, the relative gap at which it is done, and its seed."""

    iterations: int
    tolerance: float
    seed: int


def place_anchors(anchors: Anchors, bound_s: float, budget: Budget) -> dict[Piece, int] | None:
    """The best anchor placement found: construct for several targets, then ruin and recreate. None: memory."""
    ledger = anchors.ledger
    best: tuple[float, list[Seat | None], bool] | None = None
    for factor in TARGETS:
        if best is not None and best[0] <= bound_s * max(1 + budget.tolerance, (1 + factor) / 2):
            break
        for mind_memory in (False, True) if ledger.filler_bytes_per_s else (False,):
            ledger.mind_memory = mind_memory
            seated = anchors.construct(bound_s * factor)
            if seated and (best is None or ledger.worth() < best[0]):
                best = (ledger.worth(), list(anchors.seats), mind_memory)
                snapshot = ledger.snapshot()
            if seated and not ledger.is_short_of_memory():
                break
    if best is None:
        return None
    ledger.mind_memory = best[2]
    for forced in _variations(anchors) if best[0] > bound_s * (1 + FAR) else ():
        if anchors.construct(bound_s * TARGETS[1], forced) and ledger.worth() < best[0]:
            best = (ledger.worth(), list(anchors.seats), best[2])
            snapshot = ledger.snapshot()
    _, anchors.seats, ledger.mind_memory = best
    ledger.restore(snapshot)
    if anchors.items and best[0] > bound_s * (1 + budget.tolerance):
        _ruin_and_recreate(anchors, bound_s, budget)
    return anchors.pieces()


def _variations(anchors: Anchors) -> list[tuple[int, Choice]]:
    """One anchor of each kind, those of most work first, in each of its choices; fewer where anchors are many."""
    kinds = sorted(set(anchors.items), key=lambda kind: (-anchors.choices[kind][0].work_s, kind))
    forced = [(anchors.items.index(kind), choice) for kind in kinds for choice in anchors.choices[kind]]
    return forced[: VARIED // max(1, len(anchors.items))]


def _ruin_and_recreate(anchors: Anchors, bound_s: float, budget: Budget) -> None:
    """Lift a few anchors, some of them from the fullest rank, and seat them anew under a target that keeps falling.

    Ends in the best state met.
    """
    source = random.Random(budget.seed)
    ledger = anchors.ledger
    worth = ledger.worth()
    best = (list(anchors.seats), ledger.snapshot())
    ledger.aim(worth - AMBITION * (worth - bound_s))
    excess = ledger.excess()
    on_rank = _items_by_rank(anchors)
    failures = stalled = 0
    for _ in range(budget.iterations):
        if worth <= bound_s * (1 + budget.tolerance) or stalled > _patience(worth / bound_s - 1):
            break
        before = ledger.snapshot()
        restless = _split_item(anchors, source) if worth > bound_s * (1 + FAR) and source.random() < 0.5 else None
        lifted = _choose(anchors, on_rank, source) if restless is None else _window(anchors, on_rank, restless, source)
        seats = {item: anchors.remove(item) for item in lifted}
        lifted.sort(key=lambda item: -seats[item].choice.work_s * source.uniform(0.7, 1.3))
        seated = all(anchors.insert(item, _order(anchors, item, source, item == restless)) for item in lifted)
        now = ledger.excess()
        failures += 1
        stalled += 1
        if seated and (now <= excess or (now <= DETOUR[0] * excess and source.random() < DETOUR[1])):
            _follow(anchors, on_rank, seats)
            failures = 0 if now < excess else failures
            excess = now
            reached = ledger.worth()
            if reached < worth * (1 - 1e-12):
                stalled = 0
                worth, best = reached, (list(anchors.seats), ledger.snapshot())
                ledger.aim(worth - AMBITION * (worth - bound_s))
                excess = ledger.excess()
        else:
            for item, seat in seats.items():
                anchors.seats[item] = seat
            ledger.restore(before)
        if failures > PATIENCE:
            ledger.aim((worth + ledger.target_s) / 2)
            excess, failures = ledger.excess(), 0
    anchors.seats = best[0]
    ledger.restore(best[1])


def _patience(gap: float) -> float:
    return max(STALL[0], STALL[1] * min(1.0, gap / STALL_GAP))


def _split_item(anchors: Anchors, source: random.Random) -> int | None:
    split = [item for item, seat in enumerate(anchors.seats) if seat and len(seat.choice.level.blocks[seat.block]) > 1]
    return source.choice(split) if split else None


def _window(anchors: Anchors, on_rank: list[set[int]], item: int, source: random.Random) -> list[int]:
    """A split item and what shares the ranks around it, twice as many as its own: room for another degree."""
    seat = anchors.seats[item]
    assert seat is not None
    ranks = seat.choice.level.blocks[seat.block]
    width = 2 * len(ranks)
    first = ranks[0] // width * width
    around = sorted({other for members in on_rank[first : first + width] for other in members} - {item})
    return [item, *source.sample(around, min(len(around), WINDOW))]


def _order(anchors: Anchors, item: int, source: random.Random, restless: bool) -> Sequence[Choice]:
    choices = anchors.choices[anchors.items[item]]
    if len(choices) > 1 and (restless or source.random() < 0.1):
        return source.sample(choices, len(choices))
    return choices


def _choose(anchors: Anchors, on_rank: list[set[int]], source: random.Random) -> list[int]:
    """Items to lift: one or two wasteful ones, or of the fullest or any rank, and a few more from anywhere."""
    load = anchors.ledger.load_s
    draw = source.random()
    there = _wasteful(anchors) if draw < 0.3 else []
    if not there:
        rank = load.index(max(load)) if draw < 0.65 else source.randrange(len(load))
        there = sorted(on_rank[rank])
    lifted = source.sample(there, min(len(there), source.randint(1, 2)))
    wanted = min(len(anchors.items), source.randint(3, 7))
    while len(lifted) < wanted:
        item = source.randrange(len(anchors.items))
        if item not in lifted:
            lifted.append(item)
    return lifted


def _wasteful(anchors: Anchors) -> list[int]:
    """Anchors that run in a mode with more work than they need."""
    cheapest = {kind: choices[0].work_s * (1 + 1e-6) for kind, choices in anchors.choices.items()}
    return [
        item
        for item, seat in enumerate(anchors.seats)
        if seat is not None and seat.choice.work_s > cheapest[anchors.items[item]]
    ]


def _items_by_rank(anchors: Anchors) -> list[set[int]]:
    on_rank: list[set[int]] = [set() for _ in anchors.ledger.load_s]
    for item, seat in enumerate(anchors.seats):
        assert seat is not None
        for rank in seat.choice.level.blocks[seat.block]:
            on_rank[rank].add(item)
    return on_rank


def _follow(anchors: Anchors, on_rank: list[set[int]], before: dict[int, Seat]) -> None:
    for item, old in before.items():
        new = anchors.seats[item]
        assert new is not None
        if old.choice is not new.choice or old.block != new.block:
            for rank in old.choice.level.blocks[old.block]:
                on_rank[rank].discard(item)
            for rank in new.choice.level.blocks[new.block]:
                on_rank[rank].add(item)
