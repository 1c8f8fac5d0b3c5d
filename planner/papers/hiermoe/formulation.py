"""The exact model of one layer and one d (page, "How it is solved and proved"), in CP-SAT and in the page's letters.

For tokens without replicas: loads have products of chances in place of counts, and with replicas the copy that serves
depends on the source.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.papers.hiermoe.bounds.layer_bound import LayerBound
from planner.papers.hiermoe.budget import load_limit
from planner.papers.hiermoe.exact.naming import Ints, first_come
from planner.papers.hiermoe.exchange.hops import Hop, hops_of
from planner.papers.hiermoe.instance import Case, LayerCase, Tokens
from planner.routing.patterns import patterns_of
from solvers import cpsat
from solvers.report import Limits, Status

BUDGETS = ((0, 0.8), (1, 1.0))
"""Linearization and deterministic time at effort 1, in turn: each proves what takes the other much longer."""
ROUNDING = 1e-10
"""What rounding coefficients to integers takes off the bound at most, relative to it."""
_LARGEST = 2.0**52
"""Objectives above this many units would lose digits in CP-SAT; the unit is then larger and more is taken off."""


@dataclass(frozen=True, eq=False)
class Answer:
    """``rank_of`` int64 [E] is a placement below the cutoff, if one was found; none is below ``bound_s``."""

    rank_of: Ints | None
    bound_s: float
    status: Status
    timed_out: bool


@dataclass(frozen=True)
class Terms:
    """The objective: ``alpha_s`` + Σ ``per_token_s`` N + ``per_assignment_s`` Q, and those in units, rounded down.

    Rounded down, the model's least is never above the true one.
    """

    alpha_s: float
    unit_s: float
    N: dict[Hop, int]
    Q: int

    @classmethod
    def of(cls, case: Case, hops: tuple[Hop, ...], least_s: float, tops: dict[Hop, int], top_load: int) -> Terms:
        weights, costs = case.problem.objective, case.problem.costs
        mu = weights.a2a_multiplier
        links = {hop: case.link(hop.kind, hop.level) for hop in hops}
        per_token = {hop: mu * links[hop][1] * hop.participants * costs.token_bytes for hop in hops}
        per_assignment = weights.compute_multiplier * costs.compute_s_per_assignment
        most_s = sum(per_token[hop] * tops[hop] for hop in hops) + per_assignment * top_load
        unit = max(ROUNDING * least_s / (sum(tops.values()) + top_load + 1), most_s / _LARGEST, 1e-300)
        return cls(
            alpha_s=mu * sum(alpha for alpha, _ in links.values()),
            unit_s=unit,
            N={hop: math.floor(per_token[hop] / unit) for hop in hops},
            Q=math.floor(per_assignment / unit),
        )

    def units_within(self, objective_s: float) -> int:
        """Units that no placement exceeds that takes no longer than this; one is for the rounding of this division."""
        return math.floor((objective_s - self.alpha_s) / self.unit_s) + 1


class Model:
    """x[n][e, b]: expert e is in group b of n; y[n][m, b]: pattern m touches it; N of each hop; Q.

    The n are the group counts of the hops, from coarse to fine; the last is G.
    """

    def __init__(self, case: Case, layer: LayerCase, d: int, most_moved: int | None, known: LayerBound) -> None:
        from ortools.sat.python import cp_model

        if not isinstance(layer.routed, Tokens):
            raise TypeError("the reference counts tokens")
        self.case, self.layer = case, layer
        self.model = cp_model.CpModel()
        self.patterns = patterns_of(layer.routed)
        self.load = np.bincount(layer.routed.expert_ids.ravel(), minlength=case.E)
        self.hops = hops_of(case, d)
        self.levels = tuple(hop.groups for hop in self.hops)
        # The busiest expert first: what it decides is decided early.
        self.order = np.argsort(-self.load, kind="stable")
        self.free_names = most_moved is None
        self._variables(d, known)
        self._placement()
        if most_moved is None:
            self._names()
        else:
            self._stay(case.E - most_moved)
        self._traffic()
        self._loads()

    def _variables(self, d: int, known: LayerBound) -> None:
        new, E = self.model.new_bool_var, self.case.E
        M, K = self.patterns.experts.shape
        self.x = {n: {(e, b): new(f"x[{n}][{e},{b}]") for e in range(E) for b in range(n)} for n in self.levels}
        self.y = {
            n: {
                (m, b): new(f"y[{n}][{m},{b}]") if K > 1 else self.x[n][int(self.patterns.experts[m, 0]), b]
                for m in range(M)
                for b in range(n)
            }
            for n in self.levels
        }
        self.w = {hop: self.patterns.by_class(hop.classes) for hop in self.hops}
        tops = {hop: int(self.w[hop].sum(axis=0).max()) for hop in self.hops}
        top_load = int(self.load.sum())
        self.N = {
            hop: self.model.new_int_var(int(known.peaks[d][hop]), tops[hop], f"N[{hop.groups}]") for hop in self.hops
        }
        self.Q = self.model.new_int_var(int(known.peak_load), top_load, "Q")
        self.terms = Terms.of(self.case, self.hops, known.by_dimension[d], tops, top_load)
        self.objective = sum(self.terms.N[hop] * self.N[hop] for hop in self.hops) + self.terms.Q * self.Q

    def _placement(self) -> None:
        model, E = self.model, self.case.E
        for n in self.levels:
            for e in range(E):
                model.add_exactly_one(self.x[n][e, b] for b in range(n))
            for b in range(n):
                model.add(sum(self.x[n][e, b] for e in range(E)) == E // n)
        for n, below in zip(self.levels, self.levels[1:], strict=False):
            parts = below // n
            for (e, b), x in self.x[n].items():
                model.add(sum(self.x[below][e, b * parts + part] for part in range(parts)) == x)

    def _names(self) -> None:
        """Groups of one parent are alike: each is named after its first expert, in order, as ``first_come`` does."""
        for above, n in zip((1, *self.levels), self.levels, strict=False):
            for b in range(n):
                if b % (n // above):
                    for place, e in enumerate(self.order):
                        earlier = [self.x[n][int(other), b - 1] for other in self.order[:place]]
                        self.model.add(self.x[n][int(e), b] <= sum(earlier))

    def _stay(self, least: int) -> None:
        """Names matter here: a rank keeps what it has now."""
        G, slots = self.case.G, self.case.slots
        self.model.add(sum(self.x[G][int(e), s // slots] for s, e in enumerate(self.layer.current)) >= least)

    def _traffic(self) -> None:
        model, case = self.model, self.case
        M, K = self.patterns.experts.shape
        for n in self.levels if K > 1 else ():
            touched = -(-K * n // case.P)
            for m in range(M):
                for b in range(n):
                    for e in self.patterns.experts[m]:
                        model.add_implication(self.x[n][int(e), b], self.y[n][m, b])
                if touched > 1:
                    model.add(sum(self.y[n][m, b] for b in range(n)) >= touched)
        for hop, w in self.w.items():
            for c in range(hop.classes):
                sent = [(int(m), int(w[m, c])) for m in np.flatnonzero(w[:, c])]
                for b in range(hop.groups):
                    model.add(self.N[hop] >= sum(count * self.y[hop.groups][m, b] for m, count in sent))

    def _loads(self) -> None:
        G, load = self.case.G, self.load
        for g in range(G):
            self.model.add(sum(int(load[e]) * self.x[G][e, g] for e in range(self.case.E)) <= self.Q)
        most = load_limit(self.case.problem, float(load.sum()))
        if math.isfinite(most):
            self.model.add(math.floor(most) >= self.Q)

    def hint(self, rank_of: Ints) -> None:
        """Start from a placement, int64 [E]."""
        if self.free_names:
            rank_of = first_come(rank_of, self.levels, self.order)
        load = np.bincount(rank_of, weights=self.load, minlength=self.case.G)
        self.model.add_hint(self.Q, int(load.max()))
        touches: dict[int, Ints] = {}
        for n in self.levels:
            group = rank_of * n // self.case.G
            for (e, b), x in self.x[n].items():
                self.model.add_hint(x, int(group[e] == b))
            touches[n] = (group[self.patterns.experts][:, :, None] == np.arange(n)).any(axis=1).astype(np.int64)
            if self.patterns.experts.shape[1] > 1:
                for (m, b), y in self.y[n].items():
                    self.model.add_hint(y, int(touches[n][m, b]))
        for hop, N in self.N.items():
            self.model.add_hint(N, int((self.w[hop].T @ touches[hop.groups]).max()))

    def solve(self, limits: Limits, below_s: float | None, linearization: int, budget: float) -> Answer:
        """Least objective; with ``below_s`` only placements that take no longer are looked for."""
        terms, case = self.terms, self.case
        if below_s is not None:
            self.model.add(self.objective <= terms.units_within(below_s))
        self.model.minimize(self.objective)
        wanted = [self.x[case.G][e, g] for e in range(case.E) for g in range(case.G)]
        answer = cpsat.run(self.model, wanted, limits, budget, linearization)
        if answer.status is Status.INFEASIBLE:
            return Answer(None, math.inf if below_s is None else below_s, answer.status, timed_out=False)
        bound_s = terms.alpha_s + math.ceil(answer.bound - 0.5) * terms.unit_s
        if below_s is not None:
            bound_s = min(bound_s, below_s)
        rank_of = None
        if answer.values is not None:
            rank_of = np.array(answer.values, dtype=np.int64).reshape(case.E, case.G).argmax(axis=1)
        return Answer(rank_of, bound_s, answer.status, answer.timed_out)
