"""Expected counts where no tokens are known: loads with independent experts, or uniform routing (eq. 7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.exchange.copies import copies_of, serving_ranks
from planner.papers.hiermoe.exchange.hops import Hop, ranks_of_slots
from planner.papers.hiermoe.instance import Case, Loads, Table, Uniform

Floats = NDArray[np.float64]


def touch_chance(E: int, K: int) -> Floats:
    """float64 [E + 1]: q(m) = 1 - C(E-m, K) / C(E, K), that a uniform token touches a block of m experts."""
    held = np.arange(E + 1, dtype=np.float64)
    missed = np.ones(E + 1)
    for j in range(K):
        missed *= np.maximum(E - held - j, 0.0) / (E - j)
    return 1.0 - missed


def chance_of_experts(case: Case, loads: Loads, table: Table) -> Floats:
    """float64 [E]: rho, the chance that a token goes to one given copy of the expert."""
    if loads.tokens == 0:
        return np.zeros(case.E)
    return np.minimum(1.0, loads.load / (loads.tokens * copies_of(case, table)))


def load_counts(case: Case, loads: Loads, table: Table, hop: Hop, deduplicated: bool) -> Floats:
    """float64 [groups, classes], each class alike; T/classes tokens of which those that touch the group, or all."""
    rows = table.reshape(hop.groups, -1)
    if deduplicated:
        touched = 1.0 - np.prod(1.0 - chance_of_experts(case, loads, table)[rows], axis=1)
        each = loads.tokens / hop.classes * touched
    else:
        each = (loads.load / copies_of(case, table))[rows].sum(axis=1) / hop.classes
    return np.broadcast_to(each[:, None], (hop.groups, hop.classes))


def uniform_counts(case: Case, uniform: Uniform, table: Table, hop: Hop, deduplicated: bool) -> Floats:
    """float64 [groups, classes]: every source rank's tokens touch the experts that a group serves to it."""
    per_experts = touch_chance(case.E, case.K) if deduplicated else np.arange(case.E + 1) * (case.K / case.E)
    size = case.G // hop.groups
    if case.P == case.E:
        each = uniform.tokens_per_rank * (case.G // hop.classes) * per_experts[case.E // hop.groups]
        return np.broadcast_to(np.float64(each), (hop.groups, hop.classes))
    group = serving_ranks(case, table) // size
    sources = np.arange(case.G)[:, None]
    served = np.bincount((sources * hop.groups + group).ravel(), minlength=case.G * hop.groups)
    touched = per_experts[served.reshape(case.G, hop.groups)]
    each_class: Floats = uniform.tokens_per_rank * touched.reshape(-1, hop.classes, hop.groups).sum(axis=0).T
    return each_class


def expected_loads(case: Case, routed: Loads | Uniform, table: Table) -> Floats:
    """float64 [G]: assignments a rank; loads are split evenly over copies, uniform ones go to the nearest."""
    if isinstance(routed, Loads):
        shares = (routed.load / copies_of(case, table))[table]
        return np.bincount(ranks_of_slots(case), weights=shares, minlength=case.G).astype(np.float64)
    served = np.bincount(serving_ranks(case, table).ravel(), minlength=case.G)
    return served.astype(np.float64) * (routed.tokens_per_rank * case.K / case.E)
