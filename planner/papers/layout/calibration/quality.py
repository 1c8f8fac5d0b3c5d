"""How well prices and memory foretell measured runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.derivation.account import Floats


@dataclass(frozen=True)
class StepErrors:
    """Of predicted against measured step times: relative sizes, and the median with its sign."""

    runs: int
    median: float
    p90: float
    mean: float
    bias: float


@dataclass(frozen=True)
class Ranking:
    """Among runs that ran: how much longer our pick took than the fastest, its place in our list, rank correlation.

    Runs of one layout count as one, the mean of their times.
    """

    pick_loss: float
    place_of_best: int
    rank_correlation: float


@dataclass(frozen=True)
class Confusion:
    """Runs that ran out of memory and those of them foreseen; runs that ran and those of them refused."""

    failed: int
    foreseen: int
    ran: int
    refused: int

    @property
    def wrong(self) -> int:
        """Runs on the wrong side."""
        return self.failed - self.foreseen + self.refused


def step_errors(predicted: Sequence[float], measured: Sequence[float]) -> StepErrors:
    """Raises ValueError for no run."""
    if not measured:
        raise ValueError("expected at least one run")
    off = np.asarray(predicted) / np.asarray(measured) - 1
    size = np.abs(off)
    return StepErrors(
        len(measured), float(np.median(size)), float(np.quantile(size, 0.9)), float(size.mean()), float(np.median(off))
    )


def ranking(predicted: Sequence[float], measured: Sequence[float], same: Sequence[object]) -> Ranking:
    """Runs with equal ``same`` are one layout. Raises ValueError for no run."""
    if not measured:
        raise ValueError("expected at least one run")
    places: dict[object, list[int]] = {}
    for place, key in enumerate(same):
        places.setdefault(key, []).append(place)
    times = np.array([np.mean([measured[place] for place in group]) for group in places.values()])
    ours = np.array([np.mean([predicted[place] for place in group]) for group in places.values()])
    pick, best = int(ours.argmin()), int(times.argmin())
    return Ranking(
        float(times[pick] / times[best] - 1), 1 + int((ours < ours[best]).sum()), rank_correlation(ours, times)
    )


def rank_correlation(one: Floats, other: Floats) -> float:
    """Spearman's: of the ranks, equal values sharing theirs; 0 where either is constant."""
    first, second = _ranks(one), _ranks(other)
    first, second = first - first.mean(), second - second.mean()
    scale = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / scale if scale > 0 else 0.0


def confusion(peak_bytes: Sequence[float], ran: Sequence[bool], room_bytes: float) -> Confusion:
    """Of runs whose peak must be within ``room_bytes``."""
    refused = np.asarray(peak_bytes) > room_bytes
    good = np.asarray(ran, dtype=bool)
    return Confusion(int((~good).sum()), int((refused & ~good).sum()), int(good.sum()), int((refused & good).sum()))


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])
