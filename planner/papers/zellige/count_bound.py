"""LB4, the count bound (page eq. 15): degrees are taken by whole sequences, and all rows must hold at once.

T is excluded when no integers z with Σ_θ z_{i,θ} = n_i, using options with p <= T only, satisfy Σ λ f(p/T) z <= N and
Σ λ f(m/M_cap) z <= N for all f at hand. Needs no solver, so that the check of a plan can recompute it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from planner.paper import Bound
from planner.papers.zellige import dual_feasible
from planner.papers.zellige.bounds import SAFETY, quick_bounds
from planner.papers.zellige.catalogue import Catalogue, Floats
from planner.papers.zellige.instance import Instance
from solvers.counting import Counting

NODES = 60
"""Branch-and-bound nodes per tested makespan at effort 1."""

PRECISION = 1e-5
"""Relative width at which the bisection stops; what is left of a gap below it is not worth a test."""

MAX_MODES = 600
"""Above so many (kind, mode) pairs the integer programs are no longer small: LB4 is then LB3."""

MAX_RATES = 24
"""Ratios ρ of the two resources that are tried, spread over those that occur."""

_STEEPEST = 1e4
_NOISE = 1e-12


def count_bound(instance: Instance, upper_s: float, effort: float = 1.0, max_modes: int = MAX_MODES) -> Bound:
    """LB4 [s], at least LB0 to LB3; ``upper_s`` is the makespan of a known plan. Deterministic."""
    low = quick = max(bound.value for bound in quick_bounds(instance))
    if math.isinf(low) or low >= upper_s:
        return Bound(min(low, upper_s), "combinatorial", "LB4")
    catalogue = Catalogue.of(instance)
    if len(catalogue.time) > max_modes:
        return Bound(low, "combinatorial", "LB4")
    high = upper_s
    middle = upper_s * (1 - 1e-8)  # a plan that is already the best is seen at once
    while high - low > PRECISION * high:
        if is_excluded(catalogue, middle, max(1, round(NODES * effort))):
            low = middle * (1 - SAFETY)
        else:
            high = middle
        middle = (low + high) / 2
    return Bound(max(_rounded_down(low), quick), "combinatorial", "LB4")


def _rounded_down(bound_s: float) -> float:
    """To nine digits: matrix products round differently from one processor to the next, and a plan should not."""
    rounded = float(f"{bound_s:.8e}")
    return rounded if rounded <= bound_s else float(f"{bound_s * (1 - 1e-8):.8e}")


def is_excluded(catalogue: Catalogue, limit_s: float, max_nodes: int) -> bool:
    """Whether no integers satisfy all rows at makespan ``limit_s``; a budget that ends is a no."""
    allowed = catalogue.time <= limit_s
    if not np.add.reduceat(allowed.astype(np.intp), catalogue.starts).all():
        return True
    return counting_of(catalogue, limit_s, allowed).is_impossible(max_nodes)


def counting_of(catalogue: Catalogue, limit_s: float, allowed: NDArray[np.bool_]) -> Counting:
    """The integer program of one makespan over the allowed modes, at least one a kind."""
    # Sizes a hair smaller than they are: a step is then taken late, which is the safe side.
    size = catalogue.time[allowed] * ((1 - _NOISE) / limit_s)
    memory = catalogue.memory[allowed] * (1 - _NOISE)
    both = (_rows(size), _rows(memory), crossed(memory, size), crossed(size, memory))
    rows = np.concatenate(both) * catalogue.degree[allowed]
    per_kind = np.add.reduceat(allowed.astype(np.intp), catalogue.starts)
    starts = np.concatenate((np.zeros(1, dtype=np.intp), np.cumsum(per_kind)[:-1]))
    reachable = np.maximum.reduceat(rows, starts, axis=1) @ catalogue.counts > catalogue.num_ranks
    others = np.unique(rows[1:][reachable[1:]], axis=0)
    # Row 0 is the work (f = id): what the relaxation minimises.
    pool = np.concatenate((rows[:1], others))
    return Counting(pool, np.full(len(pool), float(catalogue.num_ranks)), starts, catalogue.counts)


def _rows(size: Floats) -> Floats:
    """The family of the page, and the cuts at the very sizes that occur."""
    family = dual_feasible.evaluate(size, range(dual_feasible.NUM_FUNCTIONS))
    big, small = size[size > 0.5], size[size <= 0.5]
    edges = np.unique(np.concatenate((1 - big + _NOISE, small)))
    cuts = [dual_feasible.cut(size, e) for e in edges if 0 < e <= 0.5]
    return np.concatenate((family, cuts)) if cuts else family


def crossed(used: Floats, other: Floats) -> Floats:
    """Weights of which no rank holds more than 1, for what one resource wastes of the other. [derived]

    With x the share of one resource and y of the other, for any ρ > 1: w = max(min(x, ρy), 1 - ρ(1 - y)). A rank with
    t >= 1 pieces of the second form holds at most t(1 - ρ) + ρΣy <= 1, and Σx <= 1 with none: a long sequence leaves
    no time in which the fillers that need its memory could run.
    """
    telling = (used > other) & (used < _STEEPEST * other)
    rates = np.unique(used[telling] / other[telling])
    if len(rates) > MAX_RATES:
        rates = rates[np.linspace(0, len(rates) - 1, MAX_RATES).round().astype(np.intp)]
    slope = rates[:, None]
    return np.maximum(np.minimum(used, slope * other), 1 - slope * (1 - other))
