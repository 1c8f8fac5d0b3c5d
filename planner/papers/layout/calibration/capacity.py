"""The two constants of memory that no tensor names, from runs that ran and runs that ran out of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.derivation.account import Floats
from planner.papers.layout.evaluate import bytes_by_rank, evaluate
from planner.papers.layout.layouts import Layout
from planner.papers.layout.problem import LayoutProblem

SHARES = np.arange(51) / 100
"""Fragmentation tried: 0 to a half of what comes and goes."""
MOST_RESERVED = 0.15
"""Share of the device that a reserve may take."""
RESERVES = 241
"""Reserves tried, evenly from 0 on."""


@dataclass(frozen=True, eq=False)
class RankAmounts:
    """Bytes of every pipeline rank of a run: ``fixed`` (states, communicators) and ``moving``, which fragments."""

    fixed: Floats
    moving: Floats


@dataclass(frozen=True)
class Reserved:
    """Constants with the fewest runs on the wrong side; as few from ``least_bytes`` to ``most_bytes`` of reserve."""

    fragmentation: float
    reserve_bytes: float
    least_bytes: float
    most_bytes: float
    wrong: int


def amounts(problem: LayoutProblem, layout: Layout) -> RankAmounts:
    """What the ranks of a layout hold at their peak."""
    ranks = bytes_by_rank(problem, evaluate(problem, layout, pipeline=0.0))
    moving = np.array([rank.activations + rank.transient for rank in ranks])
    fragmented = np.array([rank.fragmentation for rank in ranks])
    return RankAmounts(np.array([rank.total for rank in ranks]) - moving - fragmented, moving)


def peak_bytes(held: RankAmounts, fragmentation: float) -> float:
    """The fullest rank, without the reserve."""
    return float(np.max(held.fixed + (1 + fragmentation) * held.moving))


def fit_reserve(
    held: Sequence[RankAmounts],
    ran: Sequence[bool],
    capacity_bytes: float,
    usual_bytes: float,
    measured_bytes: Sequence[float | None] = (),
) -> Reserved:
    """Fragmentation and reserve that put the fewest runs on the wrong side of ``capacity_bytes``.

    ``measured_bytes`` are what runs took of their fullest GPU, None where nobody looked; those of runs that ran count.
    Among equals the constants nearest to them in the median run, else the least fragmentation and the reserve nearest
    to ``usual_bytes``: what the runs do not tell stays as it was. Without a run of either kind, and without a measured
    one, nothing is fitted.
    """
    good = np.asarray(ran, dtype=bool)
    took = np.array([np.nan if each is None else each for each in measured_bytes or [None] * len(good)])
    seen = good & ~np.isnan(took)
    if not seen.any() and (good.all() or not good.any()):
        return Reserved(0.0, usual_bytes, 0.0, capacity_bytes, 0)
    reserves = np.linspace(0.0, MOST_RESERVED * capacity_bytes, RESERVES)

    def under(share: float) -> tuple[Reserved, float]:
        peaks = np.array([peak_bytes(each, share) for each in held])
        fits = peaks[None, :] + reserves[:, None] <= capacity_bytes
        wrong = (fits != good).sum(axis=1)
        equal = reserves[wrong == wrong.min()]
        beside = took[seen] - peaks[seen]
        wanted = float(np.median(beside)) if len(beside) else usual_bytes
        nearest = float(np.clip(wanted, equal[0], equal[-1]))
        off = float(np.median(np.abs(beside - nearest))) if len(beside) else 0.0
        return Reserved(share, nearest, float(equal[0]), float(equal[-1]), int(wrong.min())), off

    found, _ = min(map(under, SHARES.tolist()), key=lambda each: (each[0].wrong, each[1]))
    return found
