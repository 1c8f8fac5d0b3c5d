"""A placement without replicas at one dimension, changed swap by swap, with the objective (5) kept beside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.budget import load_limit
from planner.papers.hiermoe.exchange.expectation import chance_of_experts
from planner.papers.hiermoe.exchange.hops import Hop, hops_of
from planner.papers.hiermoe.exchange.loads import expert_loads
from planner.papers.hiermoe.instance import Case, LayerCase, Loads, Table
from planner.papers.hiermoe.swaps.expected_hop import ExpectedHop, RankLoads
from planner.papers.hiermoe.swaps.terms import Counted, Term
from planner.papers.hiermoe.swaps.token_hop import TokenHop
from planner.papers.hiermoe.swaps.token_index import Indices, Pairs, TokenIndex

Floats = NDArray[np.float64]


class MovingPlacement:
    """``rank`` int64 [E]; the plain and the smooth objective, in seconds, and both after swaps.

    Where ``max_load_ratio`` is given, a rank above it costs more than any exchange: the search leaves such placements.
    """

    def __init__(self, case: Case, layer: LayerCase, index: TokenIndex | None, table: Table, d: int) -> None:
        self.case, self.d, self.index = case, d, index
        self.home = rank_of_experts(case, layer.current)
        self.rank = rank_of_experts(case, table)
        problem, weights, search = case.problem, case.problem.objective, case.problem.search
        hops = hops_of(case, d)
        links = [case.link(hop.kind, hop.level) for hop in hops]
        self.constant_s = weights.a2a_multiplier * sum(alpha_s for alpha_s, _ in links)
        per_token_s = weights.a2a_multiplier * problem.costs.token_bytes
        self.terms = [
            Term(per_token_s * beta_s * hop.participants, _counted(case, layer, index, hop, self.rank), search.gamma)
            for hop, (_, beta_s) in zip(hops, links, strict=True)
        ]
        compute_s = weights.compute_multiplier * problem.costs.compute_s_per_assignment
        self._loads: Term | None = None
        self._limit = np.inf
        if compute_s > 0 or search.max_load_ratio is not None:
            load = expert_loads(case, layer)
            self._loads = Term(compute_s, RankLoads(load, self.rank, case.G), search.gamma)
            self.terms.append(self._loads)
            if search.max_load_ratio is not None:
                self._limit = load_limit(problem, float(load.sum()))
        self._penalty_s = 1e3 * (self.constant_s + sum(term.weight * term.peak for term in self.terms))

    @property
    def plain(self) -> float:
        """The objective (5)."""
        return self.constant_s + sum(term.weight * term.peak for term in self.terms) + self._excess()

    @property
    def smooth(self) -> float:
        """The objective with smax for max."""
        return self.constant_s + sum(term.weight * term.smooth for term in self.terms) + self._excess()

    @property
    def within_limit(self) -> bool:
        """No rank is above ``max_load_ratio``."""
        return self._loads is None or self._loads.peak <= self._limit

    @property
    def moved(self) -> int:
        """Experts that are not on the rank they have now."""
        return int(np.count_nonzero(self.rank != self.home))

    def pulling(self) -> list[Term]:
        """The parts whose peak, lowered, lowers the objective."""
        return [
            term
            for term in self.terms
            if term.peak > 0 and (term.weight > 0 or (term is self._loads and not self.within_limit))
        ]

    def unlimited(self) -> None:
        """From now on no load is too large."""
        self._limit = np.inf

    def table(self) -> Table:
        """The placement, each rank's experts ascending."""
        return np.argsort(self.rank, kind="stable")

    def swap(self, r: int, f: int) -> None:
        """Exchange two experts."""
        tokens = np.zeros(0, np.int64) if self.index is None else self.index.of_either(r, f)
        for term in self.terms:
            term.counted.swap(r, f, tokens)
            term.refresh()
        self.rank[[r, f]] = self.rank[[f, r]]

    def screened(self, one: Indices, other: Indices) -> Floats:
        """float64 [swaps]: the smooth objective after each swap, by counts summed over classes."""
        total = np.full(len(one), self.constant_s)
        for term in self.terms:
            if term.weight > 0:
                total += term.weight * term.screened(one, other)
        if self._loads is not None and np.isfinite(self._limit):
            new = self._loads.counted.totals()
            total += self._excess_of(np.maximum(new[one, other], new[other, one]))
        return total

    def more_moved(self) -> NDArray[np.int64]:
        """int64 [E, E]: how many more experts than now are away from home after every swap."""
        away = (self.rank[None, :] != self.home[:, None]).astype(np.int64)
        away -= (self.rank != self.home)[:, None]
        more: NDArray[np.int64] = away + away.T
        return more

    def returning(self, r: int, f: int) -> bool:
        """The swap leaves fewer experts away from home than now."""
        now, home = self.rank[[r, f]], self.home[[r, f]]
        return int(np.count_nonzero(now[::-1] != home)) < int(np.count_nonzero(now != home))

    def after(self, one: Indices, other: Indices) -> tuple[Floats, Floats]:
        """float64 [swaps] each: the plain and the smooth objective after each swap, counted exactly."""
        pairs = Pairs(one, other)
        plain, smooth = np.full(len(one), self.constant_s), np.full(len(one), self.constant_s)
        for term in self.terms:
            own, others = term.counted.entries(pairs)
            peaks = term.peaks(one, other, own, others)
            plain += term.weight * peaks
            smooth += term.weight * term.smooths(one, other, own, others)
            if term is self._loads:
                plain += self._excess_of(peaks)
                smooth += self._excess_of(peaks)
        return plain, smooth

    def lowering(self, r: int, term: Term) -> tuple[Indices, Floats]:
        """Partners of r, of the group where ``term`` peaks, in swaps that lower this peak, and by how many seconds."""
        counted = term.counted
        group = int(counted.group[r])
        peak_class = int(counted.counts[group].argmax())
        lower = counted.one_class(r, peak_class) < term.peak
        lower &= counted.group != group
        partners = np.flatnonzero(lower)
        for also in np.flatnonzero(term.group_peak == term.peak):
            if also != group:
                partners = partners[counted.group[partners] == also]
        if not len(partners):
            return partners, np.zeros(0)
        own, others = counted.row(r, partners)
        peaks = term.peaks(np.full(len(partners), r), partners, own, others)
        lower = peaks < term.peak
        return partners[lower], term.weight * (term.peak - peaks[lower])

    def _excess(self) -> float:
        return float(self._excess_of(np.array([0.0 if self._loads is None else self._loads.peak]))[0])

    def _excess_of(self, peak: Floats) -> Floats:
        if not np.isfinite(self._limit) or self._limit == 0:  # without tokens there is no load to limit
            return np.zeros_like(peak)
        return self._penalty_s * np.where(peak > self._limit, 1.0 + peak / self._limit, 0.0)


def rank_of_experts(case: Case, table: Table) -> Indices:
    """int64 [E]: the rank of each expert of a table without replicas."""
    rank = np.empty(case.E, dtype=np.int64)
    rank[table] = np.arange(case.P) // case.slots
    return rank


def _counted(case: Case, layer: LayerCase, index: TokenIndex | None, hop: Hop, rank: Indices) -> Counted:
    if index is not None:
        return TokenHop(index, hop, rank, case.G)
    if not isinstance(layer.routed, Loads):
        raise TypeError("expected tokens or loads: where routing is uniform no placement differs")
    rho = chance_of_experts(case, layer.routed, layer.current)
    return ExpectedHop(rho, layer.routed.tokens, hop, rank, case.G)
