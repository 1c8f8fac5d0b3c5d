"""Lower bounds on the makespan that need no solver and hold for every rank-set policy (page 4.6, eq. 11-14)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from planner.paper import Bound
from planner.papers.zellige import dual_feasible
from planner.papers.zellige.catalogue import Catalogue, Floats
from planner.papers.zellige.instance import Instance

SAFETY = 1e-9
"""Step functions are float-sensitive: bounds that use them are reported lower by this much, relative."""

_PRECISION = 1e-11
_NOISE = 1e-12
_LINES = 64
_VECTOR = 40_000
"""Numbers evaluated at once in the bisection of LB3: few enough for the cache, enough to hide numpy's overhead."""


def quick_bounds(instance: Instance) -> tuple[Bound, ...]:
    """LB0, LB1, LB2 and LB3 [s], each at least the one that it refines. Infinite if a kind has no mode.

    LB0 to LB2 are correctly rounded sums, so they may exceed the real number by an ulp or two.
    """
    if not all(kind.modes for kind in instance.kinds):
        return tuple(Bound(math.inf, "combinatorial", f"LB{i}") for i in range(4))
    catalogue = Catalogue.of(instance)
    area = area_bound(catalogue)
    return (
        Bound(work_bound(catalogue), "combinatorial", "LB0"),
        Bound(area, "combinatorial", "LB1"),
        Bound(memory_bound(catalogue, area), "fractional", "LB2"),
        Bound(dual_feasible_bound(catalogue, area), "combinatorial", "LB3"),
    )


def work_bound(catalogue: Catalogue) -> float:
    """LB0 (11): all work spread evenly, or the longest of the shortest options."""
    work = catalogue.total(catalogue.least(catalogue.degree * catalogue.time)) / catalogue.num_ranks
    return max(work, float(catalogue.least(catalogue.time).max()))


def area_bound(catalogue: Catalogue) -> float:
    """LB1 (12): least T with Σ_s min_{p<=T} λp <= N·T."""
    work = catalogue.degree * catalogue.time

    def least_work(limit_s: float) -> float:
        return catalogue.total(catalogue.least(np.where(catalogue.time <= limit_s, work, np.inf)))

    return _least_time(catalogue, least_work, 0.0)


def memory_bound(catalogue: Catalogue, area_s: float) -> float:
    """LB2 (13): the same under Σ λm <= N·M_cap, options mixed fractionally. Starts from LB1."""

    def least_work(limit_s: float) -> float:
        return _work_within_memory(catalogue, limit_s)

    if least_work(area_s) <= catalogue.num_ranks * area_s * (1 + _NOISE):
        return area_s
    return max(area_s, _least_time(catalogue, least_work, area_s))


def _least_time(catalogue: Catalogue, least_work: Callable[[float], float], from_s: float) -> float:
    """Least T >= from_s with least_work(T) <= N·T; the work changes only at option times, where T need be tried."""
    times = np.unique(catalogue.time)
    floor = max(from_s, float(catalogue.least(catalogue.time).max()))
    times = np.concatenate(([floor], times[times > floor]))
    low, high = -1, len(times)
    work_low = math.inf
    while high - low > 1:
        middle = (low + high) // 2
        work = least_work(float(times[middle]))
        if work <= catalogue.num_ranks * times[middle]:
            high = middle
        else:
            low, work_low = middle, work
    # Between two option times the work is constant, so there T = work/N; at the next time it may drop.
    return min(work_low / catalogue.num_ranks, float(times[high]) if high < len(times) else math.inf)


def _work_within_memory(catalogue: Catalogue, limit_s: float) -> float:
    """min Σ λp·y with Σ λm·y <= N·M_cap and p <= T, by its dual: a concave function of one price μ of memory.

    Both are in shares (of ``limit_s`` and of the cap), so no tolerance depends on units. Every value of the dual is
    a valid bound; two supporting lines close in on the best one in a few steps.
    """
    allowed = catalogue.time <= limit_s
    time = np.where(allowed, catalogue.degree * catalogue.time / limit_s, np.inf)
    memory = np.where(allowed, catalogue.degree * catalogue.memory, np.inf)

    def line(first: Floats, second: Floats) -> tuple[float, float]:
        """Sums of both for the modes least in ``first``, ties by ``second``."""
        least = catalogue.least(first)
        ties = np.where(first <= least[catalogue.kind_of], second, np.inf)
        return catalogue.total(least), catalogue.total(catalogue.least(ties))

    best, used = line(time, memory)
    spare, work = line(memory, time)
    capacity = float(catalogue.num_ranks)
    if spare > capacity * (1 + _NOISE):
        return math.inf
    steep, flat = (best, used - capacity), (work, min(spare - capacity, 0.0))
    for _ in range(_LINES):
        if steep[1] <= 0:
            break
        price = (flat[0] - steep[0]) / (steep[1] - flat[1])
        value, used = line(time + price * memory, memory)
        value -= price * capacity
        best = max(best, value)
        crossing = steep[0] + price * steep[1]
        if value >= crossing - _NOISE * abs(crossing):
            break
        new = (value - price * (used - capacity), used - capacity)
        steep, flat = (new, flat) if new[1] > 0 else (steep, new)
    return best * limit_s


def dual_feasible_bound(catalogue: Catalogue, area_s: float) -> float:
    """LB3 (14): T is excluded when Σ_s min_{p<=T} λ f(p/T) > N for one f of the family; the same for memory.

    Monotone in T for each f, so bisection, and a function that does not exclude the lower end is never asked again.
    """
    active = np.arange(2 * dual_feasible.NUM_FUNCTIONS)
    low, high, stride = area_s, area_s * (1 + SAFETY), SAFETY
    while (excluding := _excluded(catalogue, np.array([high]), active)[:, 0]).any():
        active = active[excluding]
        if high > catalogue.time.max() and active[-1] >= dual_feasible.NUM_FUNCTIONS:
            return math.inf  # every option is allowed and memory still does not fit
        low, stride = high, stride * 32
        high = low * (1 + stride)
    if low == area_s:
        return low * (1 - SAFETY)
    while high - low > _PRECISION * high:
        points = max(1, min(15, _VECTOR // (len(catalogue.time) * len(active))))
        grid = low + (high - low) * np.arange(1, points + 1) / (points + 1)
        table = _excluded(catalogue, grid, active)
        count = int(table.any(axis=0).sum())
        if count:
            low, active = float(grid[count - 1]), active[table[:, count - 1]]
        if count < points:
            high = float(grid[count])
    return low * (1 - SAFETY)


def _excluded(catalogue: Catalogue, limits_s: Floats, active: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether each function (first axis; memory functions after those of time) excludes each limit (second axis)."""
    # Sizes a hair smaller than they are: a step is then taken late, which is the safe side.
    size = catalogue.time * (1 - _NOISE) / limits_s[:, None]
    split = int(np.searchsorted(active, dual_feasible.NUM_FUNCTIONS))
    over_time = dual_feasible.evaluate(size, active[:split])
    over_memory = dual_feasible.evaluate(catalogue.memory * (1 - _NOISE), active[split:] - dual_feasible.NUM_FUNCTIONS)
    values = np.concatenate((over_time, np.repeat(over_memory[:, None], len(limits_s), axis=1)))
    cost = np.where(size <= 1, catalogue.degree * values, np.inf)
    return catalogue.least(cost) @ catalogue.counts > catalogue.num_ranks * (1 + _NOISE)
