"""The exact reference of one layer: the model of each allowed d in turn, the most promising first, then the best d.

What has no model, loads and replicas, is enumerated where it is tiny.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.errors import LimitError
from planner.papers.hiermoe.bounds.layer_bound import layer_bound
from planner.papers.hiermoe.budget import load_limit
from planner.papers.hiermoe.exact.enumeration import is_tiny, tables
from planner.papers.hiermoe.exact.naming import Ints
from planner.papers.hiermoe.exchange.tables import moved_count
from planner.papers.hiermoe.exchange.time import best_dimension, rank_loads
from planner.papers.hiermoe.formulation import BUDGETS, ROUNDING, Model
from planner.papers.hiermoe.instance import Case, LayerCase, Table, Tokens, Uniform
from planner.routing.patterns import patterns_of
from solvers.report import Limits

SMALL_EXPERTS, SMALL_GPUS, SMALL_ROWS = 32, 8, 500
"""Up to these ``search.exact: auto`` uses the model; rows are distinct pairs of source and experts."""
MOST_CELLS = 100_000
"""Patterns times ranks, or experts squared times ranks, that a model may have at all."""
_CLOSE = 4 * ROUNDING


@dataclass(frozen=True, eq=False)
class Exact:
    """The best placement known, at its best d, and what none within the limits is below [s].

    ``proved``: the two agree up to a few ROUNDING. ``table`` is None if nothing was found within the limits on moves
    and loads, with ``bound_s`` infinite if it is proved that nothing exists. ``kind`` is that of a certificate.
    """

    table: Table | None
    d: int
    objective_s: float
    bound_s: float
    proved: bool
    kind: str


def is_small(case: Case, layer: LayerCase) -> bool:
    """Whether ``search.exact: auto`` uses the reference."""
    if not _has_model(case, layer):
        # Without replicas every placement is alike to uniform routing, and equation 10 is what all of them take.
        return is_tiny(case) and not (isinstance(layer.routed, Uniform) and case.P == case.E)
    if case.E > SMALL_EXPERTS or case.G > SMALL_GPUS or not isinstance(layer.routed, Tokens):
        return False
    return patterns_of(layer.routed).rows <= SMALL_ROWS


def cannot(case: Case, layer: LayerCase) -> str | None:
    """Why the reference does not take a layer on even where it is asked to; None where it does."""
    if not isinstance(layer.routed, Tokens) or case.P > case.E:
        what = "replicas have" if case.P > case.E else "routing without tokens has"
        return None if is_tiny(case) else f"{what} no exact model, and there are too many placements to try"
    if max(len(patterns_of(layer.routed).experts), case.E * case.E) * case.G > MOST_CELLS:
        return f"the exact model takes at most {MOST_CELLS:,} pairs of a rank and a distinct token"
    return None


def exact_layer(
    case: Case, layer: LayerCase, hint: Table | None, limits: Limits, most_moved: int | None = None
) -> Exact:
    """The best placement over the allowed d; ``hint`` is kept where nothing better is found.

    At most ``most_moved`` experts come to another rank than their current one, and loads keep
    ``search.max_load_ratio``; a hint that does not is not used. Raises LimitError (time_limit) when the wall clock
    ends it and ``keep_best`` is off.
    """
    if most_moved is not None and most_moved >= case.P:
        most_moved = None
    best = _Best(case, layer, most_moved)
    if hint is not None:
        best.offer(hint)
    if not _has_model(case, layer):
        for table in tables(case, renamed=most_moved is None and case.P == case.E):
            best.offer(table)
        return best.exact(best.objective_s, "exhaustive")
    known = layer_bound(case, layer)
    quick = known.by_dimension
    bounds = dict(quick)
    # Dimensions within a round and rounds over dimensions: what one finds cuts off what the next has to look at.
    for linearization, budget in BUDGETS:
        for d in sorted(case.dimensions, key=lambda d: (quick[d], d)):
            if bounds[d] >= best.objective_s * (1 - ROUNDING):
                continue
            model = Model(case, layer, d, most_moved, known)
            below_s = None
            if best.table is not None:
                model.hint(_rank_of(case, best.table))
                below_s = best.objective_s * (1 - ROUNDING)
            answer = model.solve(limits, below_s, linearization, budget)
            if answer.timed_out and not limits.keep_best:
                raise LimitError(f"the time limit of {limits.time_limit_s} s ended the reference", code="time_limit")
            bounds[d] = max(bounds[d], answer.bound_s)
            if answer.rank_of is not None:
                best.offer(np.argsort(answer.rank_of, kind="stable"))
    return best.exact(min(bounds.values()), "solver")


class _Best:
    """The best placement offered so far that keeps the limits."""

    def __init__(self, case: Case, layer: LayerCase, most_moved: int | None) -> None:
        self._case, self._layer, self._most_moved = case, layer, most_moved
        self.table: Table | None = None
        self.d, self.objective_s = case.dimensions[0], math.inf

    def offer(self, table: Table) -> None:
        """Keep a placement if it is within the limits and better."""
        case, layer = self._case, self._layer
        if self._most_moved is not None and moved_count(layer.current, table, case.G) > self._most_moved:
            return
        if case.problem.search.max_load_ratio is not None:
            loads = rank_loads(case, layer, table)
            if loads.max() > load_limit(case.problem, float(loads.sum())):
                return
        d, objective_s = best_dimension(case, layer, table)
        if objective_s < self.objective_s:
            self.table, self.d, self.objective_s = table, d, objective_s

    def exact(self, bound_s: float, kind: str) -> Exact:
        """The answer, given what nothing is below."""
        if self.table is None:
            return Exact(None, self.d, math.inf, bound_s, math.isinf(bound_s), kind)
        bound_s = min(bound_s, self.objective_s)
        return Exact(self.table, self.d, self.objective_s, bound_s, self.objective_s <= bound_s * (1 + _CLOSE), kind)


def _has_model(case: Case, layer: LayerCase) -> bool:
    return isinstance(layer.routed, Tokens) and case.P == case.E


def _rank_of(case: Case, table: Table) -> Ints:
    """int64 [E]: each expert's rank."""
    ranks = np.empty(case.E, dtype=np.int64)
    ranks[table] = np.arange(case.E) // case.slots
    return ranks
