"""Local search by swaps: the best smooth swap while one helps, then plain ones until none does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.exchange.time import TIE
from planner.papers.hiermoe.swaps.moving_placement import MovingPlacement
from planner.papers.hiermoe.swaps.token_index import Indices

RESCORED = 64
"""Pairs that screening puts first, counted exactly before one is taken."""
ALL_PAIRS = 2**20
"""Where counting every pair exactly looks at no more experts of tokens than this, nothing is screened."""
BATCH = 256
"""Pairs counted at a time."""
SMOOTH_GAIN = 1e-9
PATIENCE = 16
"""Smooth swaps that may pass, E/8 more, without a better plain objective."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class SwapStep:
    """A swap and what it makes of the two objectives."""

    r: int
    f: int
    plain: float
    smooth: float


@dataclass
class Walk:
    """Swaps made and how many more may be; ``max_moved`` experts may be away from home."""

    swaps_left: int
    max_moved: int | None = None
    visit: Callable[[MovingPlacement], None] | None = None
    done: list[tuple[int, int]] = field(default_factory=list)

    def make(self, placement: MovingPlacement, r: int, f: int) -> None:
        """Swap and keep account."""
        placement.swap(r, f)
        self.done.append((r, f))
        self.swaps_left -= 1
        if self.visit is not None:
            self.visit(placement)

    def allowed(self, placement: MovingPlacement) -> Flags | None:
        """bool [E, E]: swaps that keep the move budget; None where there is none."""
        if self.max_moved is None:
            return None
        return placement.more_moved() + placement.moved <= self.max_moved


def descend(placement: MovingPlacement, walk: Walk) -> bool:
    """Smooth swaps, back to the best plain objective met, then plain swaps. True if none of these helps any more."""
    smooth_descent(placement, walk)
    return polish(placement, walk)


def smooth_descent(placement: MovingPlacement, walk: Walk) -> None:
    """The best smooth swap while it lowers the smooth objective; ends at the best plain objective met."""
    best, best_at = placement.plain, len(walk.done)
    while walk.swaps_left > 0:
        step = best_smooth(placement, walk.allowed(placement))
        if step is None or step.smooth >= placement.smooth * (1 - SMOOTH_GAIN):
            break
        walk.make(placement, step.r, step.f)
        if placement.plain < best * (1 - TIE):
            best, best_at = placement.plain, len(walk.done)
        elif len(walk.done) - best_at >= PATIENCE + placement.case.E // 8:
            break
    for r, f in reversed(walk.done[best_at:]):
        placement.swap(r, f)
    del walk.done[best_at:]


def best_smooth(placement: MovingPlacement, allowed: Flags | None) -> SwapStep | None:
    """The swap of least smooth objective, the lexicographically first of equals; None if no swap is allowed."""
    one, other = _candidates(placement, allowed)
    if not len(one):
        return None
    plain, smooth = placement.after(one, other)
    at = int(np.flatnonzero(smooth <= smooth.min() * (1 + TIE))[0])
    return SwapStep(int(one[at]), int(other[at]), float(plain[at]), float(smooth[at]))


def _candidates(placement: MovingPlacement, allowed: Flags | None) -> tuple[Indices, Indices]:
    """Pairs of experts r < f of two ranks, lexicographic: all of them, or those that screening finds best."""
    E, index = placement.case.E, placement.index
    work = E * E * (1 if index is None else 1 + index.T * index.K * index.K // E)
    apart = placement.rank[:, None] != placement.rank
    one, other = np.triu(apart if allowed is None else apart & allowed).nonzero()
    if work <= ALL_PAIRS:
        return one, other
    if len(one) > RESCORED:
        value = placement.screened(one, other)
        close = np.flatnonzero(value <= np.partition(value, RESCORED - 1)[RESCORED - 1])
        best = np.sort(close[np.argsort(value[close], kind="stable")[:RESCORED]])
        one, other = one[best], other[best]
    return one, other


def first_swaps(placement: MovingPlacement, allowed: Flags | None, number: int) -> list[tuple[int, int]]:
    """Swaps to try a walk from, one after the other: those of least plain objective, then of least smooth one."""
    one, other = _candidates(placement, allowed)
    if not len(one):
        return []
    plain, smooth = placement.after(one, other)
    best = [*np.lexsort((smooth, plain))[:number], *np.argsort(smooth, kind="stable")[:number]]
    return [(int(one[at]), int(other[at])) for at in dict.fromkeys(best)]


def polish(placement: MovingPlacement, walk: Walk) -> bool:
    """The best plain swap while one helps. True if none does any more, False if the swaps ran out."""
    while (step := best_plain(placement, walk.allowed(placement))) is not None:
        if walk.swaps_left <= 0:
            return False
        walk.make(placement, step[0], step[1])
    return True


def best_plain(placement: MovingPlacement, allowed: Flags | None) -> tuple[int, int] | None:
    """A swap that lowers the objective (5), of the most promising ones the best; None if none of all does.

    A swap lowers it only if it lowers the peak of some hop, or the largest load: one expert is of the peak group, and
    where two groups have the peak both are involved.
    """
    bar = placement.plain * (1 - TIE)
    pairs = _lowering(placement, allowed)
    for start in range(0, len(pairs), BATCH):
        part = pairs[start : start + BATCH]
        plain, _ = placement.after(part[:, 0], part[:, 1])
        if plain.min() < bar:
            # The lexicographically first of equals; batches come by what they may gain at most.
            r, f = min(part[plain <= plain.min() * (1 + TIE)].tolist())
            return r, f
    return None


def _lowering(placement: MovingPlacement, allowed: Flags | None) -> Indices:
    """int64 [pairs, 2]: swaps r < f that lower some peak, those first that lower one part of the objective most."""
    gain: dict[tuple[int, int], float] = {}
    for term in placement.pulling():
        peaking = np.flatnonzero(term.group_peak == term.peak)
        if len(peaking) > 2:
            continue
        for r in np.flatnonzero(term.counted.group == peaking[0]).tolist():
            partners, lower = placement.lowering(r, term)
            for f, seconds in zip(partners.tolist(), lower.tolist(), strict=True):
                if allowed is None or allowed[r, f]:
                    pair = (min(r, f), max(r, f))
                    gain[pair] = gain.get(pair, 0.0) + seconds
    return np.array(sorted(gain, key=lambda pair: (-gain[pair], pair)), dtype=np.int64).reshape(-1, 2)
