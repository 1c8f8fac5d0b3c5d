"""What one layer's exchange costs under a placement: counts (eq. 3), times (1)(2), d* (4), loads, objective (5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.exchange.copies import serving_ranks
from planner.papers.hiermoe.exchange.expectation import expected_loads, load_counts, uniform_counts
from planner.papers.hiermoe.exchange.hops import Hop, hops_of, ranks_of_slots
from planner.papers.hiermoe.instance import Case, LayerCase, Loads, Table, Tokens

CHUNK = 2**16
"""Tokens counted at a time."""
TIE = 1e-12
"""Objectives that differ by no more, relative, are the same: sums of the same counts in another order."""


def counts(
    case: Case, layer: LayerCase, table: Table, hop: Hop, *, deduplicated: bool = True
) -> NDArray[np.int64] | NDArray[np.float64]:
    """[groups, classes]: tokens that holders of each class send to each group; expected ones where none are known.

    A token counts once a group (eq. 3), or, not ``deduplicated``, once an expert. It may be a read-only view.
    """
    routed = layer.routed
    if isinstance(routed, Tokens):
        return _token_counts(case, routed, table, hop, deduplicated)
    if isinstance(routed, Loads):
        return load_counts(case, routed, table, hop, deduplicated)
    return uniform_counts(case, routed, table, hop, deduplicated)


def a2a_seconds(
    case: Case, layer: LayerCase, table: Table, d: int, *, deduplicated: bool = True
) -> tuple[float, tuple[float, ...]]:
    """Seconds of one exchange in d dimensions (eqs 1, 2), and each hop's largest count."""
    hops = hops_of(case, d)
    peaks = tuple(float(counts(case, layer, table, hop, deduplicated=deduplicated).max()) for hop in hops)
    return sum(hop_seconds(case, hop, peak) for hop, peak in zip(hops, peaks, strict=True)), peaks


def hop_seconds(case: Case, hop: Hop, peak: float) -> float:
    """Seconds of one collective that pads to ``peak`` tokens."""
    alpha_s, beta_s = case.link(hop.kind, hop.level)
    return alpha_s + beta_s * hop.participants * peak * case.problem.costs.token_bytes


def rank_loads(case: Case, layer: LayerCase, table: Table) -> NDArray[np.float64]:
    """float64 [G]: (token, expert) assignments that land on each rank."""
    routed = layer.routed
    if not isinstance(routed, Tokens):
        return expected_loads(case, routed, table)
    loads = np.zeros(case.G)
    destination = _Destinations(case, table)
    for first in range(0, routed.count, CHUNK):
        part = slice(first, first + CHUNK)
        loads += np.bincount(destination(routed.source[part], routed.expert_ids[part]).ravel(), minlength=case.G)
    return loads


def layer_objective(case: Case, layer: LayerCase, table: Table, d: int) -> float:
    """mu_a2a times the exchange plus mu_comp kappa times the largest rank load (eq. 5), in seconds."""
    return objective_seconds(case, a2a_seconds(case, layer, table, d)[0], rank_loads(case, layer, table))


def objective_seconds(case: Case, exchange_s: float, loads: NDArray[np.float64]) -> float:
    """Equation 5 from its parts."""
    weights, kappa_s = case.problem.objective, case.problem.costs.compute_s_per_assignment
    return weights.a2a_multiplier * exchange_s + weights.compute_multiplier * kappa_s * float(loads.max())


def best_dimension(case: Case, layer: LayerCase, table: Table) -> tuple[int, float]:
    """The allowed d of least exchange time, the smallest on ties (eq. 4), and the objective at it."""
    seconds = {d: a2a_seconds(case, layer, table, d)[0] for d in case.dimensions}
    d = min(seconds, key=lambda d: (seconds[d], d))
    return d, objective_seconds(case, seconds[d], rank_loads(case, layer, table))


def _token_counts(case: Case, tokens: Tokens, table: Table, hop: Hop, deduplicated: bool) -> NDArray[np.int64]:
    size = case.G // hop.groups
    found = np.zeros(hop.groups * hop.classes, dtype=np.int64)
    destination = _Destinations(case, table)
    # Large tables of counts are not to be summed for every few tokens.
    chunk = max(CHUNK, len(found) // case.K)
    for first in range(0, tokens.count, chunk):
        source = tokens.source[first : first + chunk]
        group = destination(source, tokens.expert_ids[first : first + chunk]) // np.int32(size)
        keys = group * np.int64(hop.classes) + (source % np.int32(hop.classes))[:, None]
        if deduplicated:
            keys.sort(axis=1)
            new = np.ones(keys.shape, dtype=bool)
            np.not_equal(keys[:, 1:], keys[:, :-1], out=new[:, 1:])
            keys = keys[new]
        found += np.bincount(keys.ravel(), minlength=len(found))
    return found.reshape(hop.groups, hop.classes)


class _Destinations:
    """Ranks [T, K] of experts [T, K] for tokens of sources [T]."""

    def __init__(self, case: Case, table: Table) -> None:
        self._nearest = serving_ranks(case, table) if case.P > case.E else None
        self._only = np.zeros(case.E, dtype=np.int32)
        self._only[table] = ranks_of_slots(case)

    def __call__(self, source: NDArray[np.int32], experts: NDArray[np.int32]) -> NDArray[np.int32]:
        return self._only[experts] if self._nearest is None else self._nearest[source[:, None], experts]
