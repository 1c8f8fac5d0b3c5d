"""What the check counts by itself, token by token (page, "The model"): where tokens go, and what that takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.problem import HiermoeProblem, LinkCost
from planner.routing.routed import Loads, Routed, Tokens, Uniform

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TOLERANCE = 1e-9
"""Relative difference below which two figures agree, and by which a limit may be exceeded."""

_CHUNK = 2**20
"""Assignments, or pairs of rank and expert, looked at together."""


@dataclass(frozen=True)
class Step:
    """One collective: ``groups`` receive, and holders differ by source rank mod ``classes``."""

    kind: str
    level: int
    participants: int
    groups: int
    classes: int
    link: LinkCost


@dataclass(frozen=True)
class Recount:
    """One placement counted again. ``peaks``: the largest count of each step [tokens]; ``peak_load`` in assignments."""

    steps: tuple[Step, ...]
    peaks: tuple[float, ...]
    times_s: tuple[float, ...]
    peak_load: float
    mean_load: float
    token_bytes: float
    a2a_s: float
    objective_s: float


def steps(problem: HiermoeProblem, d: int) -> tuple[Step, ...]:
    """The collectives of a d-dimensional exchange: Inter-1 to Inter-(d-1), then Intra-(d-1); the flat one for d = 1."""
    G, U, links = problem.topology.gpus, problem.topology.level_groups, problem.costs.links
    if d == 1:
        return (Step("flat", 0, G, G, G, links.flat),)
    inter = [Step("inter", i, U[i] // U[i - 1], U[i], G // U[i - 1], links.inter[i - 1]) for i in range(1, d)]
    last = G // U[d - 1]
    return (*inter, Step("intra", d - 1, last, G, last, links.intra[d - 2]))


def recount(problem: HiermoeProblem, routed: Routed, table: Ints, d: int) -> Recount:
    """Equations 1, 2, 3 and 5 of one layer; ``table`` holds every expert."""
    hops = steps(problem, d)
    reach = destinations(problem, table)
    peaks = tuple(float(counts(problem, routed, table, reach, hop).max(initial=0)) for hop in hops)
    loads = rank_loads(problem, routed, table, reach)
    return price(problem, hops, peaks, float(loads.max()), float(loads.sum()) / problem.topology.gpus)


def price(
    problem: HiermoeProblem, hops: tuple[Step, ...], peaks: tuple[float, ...], peak_load: float, mean_load: float
) -> Recount:
    """Equations 1, 2 and 5 from the largest counts."""
    Mv, kappa = problem.costs.token_bytes, problem.costs.compute_s_per_assignment
    times = tuple(
        hop.link.latency_s + hop.participants * peak * Mv / hop.link.bandwidth_bytes_per_s
        for hop, peak in zip(hops, peaks, strict=True)
    )
    a2a_s = math.fsum(times)
    weights = problem.objective
    objective_s = weights.a2a_multiplier * a2a_s + weights.compute_multiplier * kappa * peak_load
    return Recount(hops, peaks, times, peak_load, mean_load, Mv, a2a_s, objective_s)


def destinations(problem: HiermoeProblem, table: Ints) -> Ints:
    """int64 [G, E], or [1, E] if every expert sits once: the rank to which a source sends a token for an expert.

    The copy in the smallest group around the source; of several, ordered by slot, number source mod their number.
    """
    G, E = problem.topology.gpus, problem.num_experts
    ranks = np.arange(len(table)) * G // len(table)
    if len(table) == E:
        only = np.empty((1, E), dtype=np.int64)
        only[0, table] = ranks
        return only
    copies = np.sort(table * G + ranks)
    sizes = [1] + [G // groups for groups in reversed(problem.topology.level_groups)]
    reach = np.full((G, E), -1, dtype=np.int64)
    rows = max(1, _CHUNK // E)
    for first in range(0, G, rows):
        source = np.arange(first, min(first + rows, G))[:, None]
        block = reach[first : first + rows]
        for size in sizes:
            start = np.arange(E) * G + source // size * size
            low = np.searchsorted(copies, start)
            number = np.searchsorted(copies, start + size) - low
            chosen = copies[np.minimum(low + source % np.maximum(number, 1), len(copies) - 1)] % G
            np.copyto(block, chosen, where=(block < 0) & (number > 0))
    return reach


def counts(problem: HiermoeProblem, routed: Routed, table: Ints, reach: Ints, hop: Step) -> Floats:
    """float64 [groups, classes] or, where all classes are alike, [groups, 1]: equation 3, or what is expected of it."""
    G, size = problem.topology.gpus, problem.topology.gpus // hop.groups
    if isinstance(routed, Loads):
        share = _share(routed, table) / (routed.tokens or 1.0)
        with np.errstate(divide="ignore"):
            missed = np.log1p(-np.minimum(1.0, share)).reshape(hop.groups, -1).sum(axis=1)
        return np.asarray(routed.tokens / hop.classes * -np.expm1(missed))[:, None]
    if isinstance(routed, Uniform):
        found = np.zeros((hop.groups, hop.classes))
        for rank in range(G):
            held = np.bincount(reach[rank % len(reach)] // size, minlength=hop.groups)
            found[:, rank % hop.classes] += routed.tokens_per_rank * _touched(problem, held)
        return found
    total = np.zeros(hop.groups * hop.classes, dtype=np.int64)
    for source, ids in _chunks(routed):
        groups = np.sort(reach[source[:, None] % len(reach), ids] // size, axis=1)
        first = np.ones(groups.shape, dtype=bool)
        first[:, 1:] = groups[:, 1:] != groups[:, :-1]
        places = groups * hop.classes + (source % hop.classes)[:, None]
        total += np.bincount(places[first], minlength=len(total))
    return total.reshape(hop.groups, hop.classes).astype(np.float64)


def rank_loads(problem: HiermoeProblem, routed: Routed, table: Ints, reach: Ints) -> Floats:
    """float64 [G]: assignments that land on each rank."""
    G = problem.topology.gpus
    if isinstance(routed, Loads):
        return np.asarray(_share(routed, table).reshape(G, -1).sum(axis=1))
    if isinstance(routed, Uniform):
        held = np.bincount(reach.ravel(), minlength=G) * (G // len(reach))
        return np.asarray(held * (routed.tokens_per_rank * problem.top_k / problem.num_experts))
    total = np.zeros(G, dtype=np.int64)
    for source, ids in _chunks(routed):
        total += np.bincount(reach[source[:, None] % len(reach), ids].ravel(), minlength=G)
    return total.astype(np.float64)


def _share(routed: Loads, table: Ints) -> Floats:
    """float64 [P]: assignments of each slot, copies sharing evenly."""
    return np.asarray((routed.load / np.bincount(table, minlength=len(routed.load)))[table])


def _touched(problem: HiermoeProblem, held: Ints) -> Floats:
    """The chance that a token picks at least one of ``held`` experts (eq. 7)."""
    E = problem.num_experts
    missed = np.ones(len(held))
    for j in range(problem.top_k):
        missed *= np.maximum(E - held - j, 0) / (E - j)
    return 1.0 - missed


def _chunks(routed: Tokens) -> Iterator[tuple[Ints, Ints]]:
    """Sources [t] and experts [t, K], a part of the tokens at a time."""
    rows = max(1, _CHUNK // max(1, routed.expert_ids.shape[1]))
    for first in range(0, len(routed.source), rows):
        part = slice(first, first + rows)
        yield routed.source[part].astype(np.int64), routed.expert_ids[part].astype(np.int64)


def agree(first: float, second: float) -> bool:
    """Equal within the tolerance."""
    return math.isclose(first, second, rel_tol=TOLERANCE, abs_tol=0.0)
