"""The closed form (page, section 3.3): it proposes a degree and explains the choice; the scan decides.

T(d) is the larger of two curves A d + B + C / d, one for each stage that may bound it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from planner.papers.compass.times import Costs, Floats, inter_decom_s

TIE = 1e-9
"""Relative difference below which two times are equal."""


@dataclass(frozen=True)
class Curve:
    """A d + B + C / d [s]."""

    A: Floats
    B: Floats
    C: Floats

    def at(self, d: Floats | float) -> Floats:
        """The curve at finite degrees, and its limit without end."""
        degrees = np.asarray(d, dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            value = self.A * degrees + self.B + self.C / degrees
        return np.where(np.isinf(degrees), np.where(self.A > 0, np.inf, self.B), value)

    def optimum(self) -> Floats:
        """d*: 1 where more chunks never help, infinity where they always do; never below 1."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            root = np.sqrt(self.C / self.A)
        return np.where(self.C > 0, np.where(self.A > 0, np.maximum(root, 1.0), np.inf), 1.0)

    def least_from(self, first: float) -> Floats:
        """The least value [s] over all real d >= first."""
        return self.at(np.maximum(self.optimum(), first))


def comm_bound(costs: Costs) -> Curve:
    """Equation 3: the collective is the slower stage."""
    spare = 1 - costs.mu_c
    return Curve(
        A=np.asarray(costs.mu_c * costs.a_c),
        B=np.asarray(costs.mu_c * costs.v_c + costs.a_g + spare * costs.a_c),
        C=np.asarray(costs.v_g + spare * costs.v_c),
    )


def gemm_bound(costs: Costs) -> Curve:
    """Equation 4: the GEMM is the slower stage."""
    spare = 1 - costs.mu_g
    return Curve(
        A=np.asarray(costs.mu_g * costs.a_g),
        B=np.asarray(costs.mu_g * costs.v_g + costs.a_c + spare * costs.a_g),
        C=np.asarray(costs.v_c + spare * costs.v_g),
    )


def crossing(costs: Costs) -> Floats:
    """d× (equation 6), the degree at which the bound stage changes; NaN where it never does."""
    payloads = costs.mu_g * costs.v_g - costs.mu_c * costs.v_c
    startups = costs.mu_c * costs.a_c - costs.mu_g * costs.a_g
    changes = (payloads > 0) & (startups > 0) | (payloads < 0) & (startups < 0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(changes, payloads / startups, np.nan)


def real_optimum(costs: Costs) -> Floats:
    """The real d >= 1 of least T(d) (equation 5), the smallest of equal ones; infinity, or NaN without stages."""
    first, second = comm_bound(costs), gemm_bound(costs)
    cross = np.maximum(np.nan_to_num(crossing(costs), nan=1.0), 1.0)
    one = np.ones_like(cross)
    points = np.sort(np.stack([one, first.optimum(), second.optimum(), cross]), axis=0)
    values = np.maximum(first.at(points), second.at(points))
    least = values.min(axis=0)
    place = (values <= least * (1 + TIE)).argmax(axis=0)
    found = np.take_along_axis(points, place[None], axis=0)[0]
    return np.where(np.isnan(least), np.nan, found)


def proposed_degrees(costs: Costs, degrees: Sequence[Sequence[int]]) -> list[int | None]:
    """The legal degree of least T(d) for every operator, from the neighbours of d3*, d4* and d× alone.

    ``degrees[i]`` are operator i's, ascending. Each curve falls and then rises, so their maximum does, and what ties
    with the best degree lies beside it. None where no degree is legal.
    """
    roots = np.stack([comm_bound(costs).optimum(), gemm_bound(costs).optimum(), crossing(costs)], axis=1).tolist()
    near = [_neighbours(legal, each) for legal, each in zip(degrees, roots, strict=True)]
    owner = np.repeat(np.arange(len(near)), [len(tried) for tried in near])
    tried = np.array([d for each in near for d in each], dtype=np.int64)
    times = iter(inter_decom_s(costs.of(owner), tried).tolist())
    return [
        _first_tied(costs, index, each, legal, times)
        for index, (each, legal) in enumerate(zip(near, degrees, strict=True))
    ]


def _neighbours(legal: Sequence[int], roots: Sequence[float]) -> list[int]:
    near = set(legal[:1])
    for root in roots:
        if not math.isnan(root):
            place = bisect_left(legal, root)
            near.update(legal[max(place - 1, 0) : place + 1])
    return sorted(near)


def _first_tied(
    costs: Costs, index: int, near: Sequence[int], legal: Sequence[int], times: Iterator[float]
) -> int | None:
    """The smallest degree that ties with the best of those near, whose times come next."""
    timed = dict(zip(near, times, strict=False))
    if not timed:
        return None
    limit_s = min(timed.values()) * (1 + TIE)
    place = bisect_left(legal, next(d for d, time_s in timed.items() if time_s <= limit_s))
    while place > 0:
        below = legal[place - 1]
        time_s = timed[below] if below in timed else float(inter_decom_s(costs.of(index), below))
        if time_s > limit_s:
            break
        place -= 1
    return legal[place]
