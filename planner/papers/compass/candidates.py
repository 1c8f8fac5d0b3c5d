"""Everything every operator may do (page, sections 3.4 to 3.6), priced: one long table, operator after operator.

An operator's candidates stand in the order that ties prefer: sequential, then chunks by degree, then fused kernels by
id. With a table its degrees and times stand in place of the model's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.papers.compass.closed_form import TIE
from planner.papers.compass.degrees import launched_degrees
from planner.papers.compass.problem import CompassProblem, Operator, Rules
from planner.papers.compass.times import Costs, Floats, Ints, Truths, costs_of, inter_decom_s

SEQUENTIAL, INTER_DECOM, INTRA_FUSION = range(3)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates of all operators: those of operator i stand from ``starts[i]`` to ``starts[i + 1]``.

    ``kind`` indexes STRATEGIES, ``degree`` is 1 unless chunks, ``variant`` the place among the operator's fused
    kernels, -1 for none. ``sequential_s`` is each operator's time in sequence, also where that is not allowed.
    """

    costs: Costs
    count: Floats
    starts: Ints
    kind: Ints
    degree: Ints
    variant: Ints
    time_s: Floats
    sequential_s: Floats

    @property
    def operator(self) -> Ints:
        """The operator of every candidate."""
        return np.repeat(np.arange(len(self.count)), np.diff(self.starts))

    def without(self, refused: Truths) -> Candidates:
        """The same with some candidates out of reach: they take forever."""
        return replace(self, time_s=np.where(refused, np.inf, self.time_s))

    def least_s(self) -> Floats:
        """The least time [s] of every operator; infinity where it has no candidate."""
        held = np.diff(self.starts) > 0
        least = np.full(len(self.count), np.inf)
        if held.any():
            least[held] = np.minimum.reduceat(self.time_s, self.starts[:-1][held])
        return least

    def best(self) -> Ints:
        """The place of every operator's best candidate, of tied ones the first; -1 where none is in reach."""
        least = self.least_s()
        owner = self.operator
        tied = np.flatnonzero(self.time_s <= least[owner] * (1 + TIE))
        tied = tied[np.isfinite(self.time_s[tied])]
        first = tied[np.diff(owner[tied], prepend=-1) > 0]
        place = np.full(len(self.count), -1, dtype=np.int64)
        place[owner[first]] = first
        return place

    def total_s(self, places: Ints) -> float:
        """The objective [s] of one candidate for every operator (equation 8)."""
        return float(self.count @ self.time_s[places])


def degrees_offered(operator: Operator, rules: Rules) -> tuple[int, ...]:
    """The degrees that may be chosen, ascending: legal, in the table where one is given, and priced at all."""
    if "inter_decom" not in operator.allowed_strategies:
        return ()
    legal = launched_degrees(operator, rules)
    if operator.inter_decom_table is None:
        return () if operator.comm is None else legal
    listed = {point.degree for point in operator.inter_decom_table}
    return tuple(d for d in legal if d in listed)


def candidates(problem: CompassProblem) -> Candidates:
    """The candidates of a problem in canonical form, in its order of operators; made once."""
    found = problem.kept.worked_out.get(problem.launcher_rules)
    if not isinstance(found, Candidates):
        found = _made(problem)
        problem.kept.worked_out[problem.launcher_rules] = found
    return found


def _made(problem: CompassProblem) -> Candidates:
    rules, operators = problem.launcher_rules, problem.operators
    sizes: list[tuple[int, int, int]] = []
    degrees: list[int] = []
    listed: list[tuple[int, list[float]]] = []
    fused_s: list[float] = []
    variants: list[int] = []
    for operator in operators:
        chunks, kernels, allowed = degrees_offered(operator, rules), operator.fused, operator.allowed_strategies
        if chunks and operator.inter_decom_table is not None:
            listed.append((len(degrees), _listed_s(operator, chunks)))
        degrees += chunks
        if kernels and (rules != "none" or "intra_fusion" not in allowed):
            kernels = ()
        for kernel in kernels:
            fused_s.append(kernel.time_s)
        variants += range(len(kernels))
        sizes.append(("sequential" in allowed, len(chunks), len(kernels)))
    costs = costs_of(operators)
    by_kind = np.array(sizes, dtype=np.int64)
    counts = by_kind.sum(axis=1)
    owner = np.repeat(np.arange(len(operators)), counts)
    kind = np.repeat(np.tile((SEQUENTIAL, INTER_DECOM, INTRA_FUSION), len(operators)), by_kind.ravel())
    chunk, fused = kind == INTER_DECOM, kind == INTRA_FUSION
    degree, variant = np.ones(len(kind), dtype=np.int64), np.full(len(kind), -1, dtype=np.int64)
    degree[chunk], variant[fused] = degrees, variants
    stated_s = np.array([operator.sequential_time_s for operator in operators], dtype=np.float64)
    sequential_s = np.where(np.isnan(stated_s), inter_decom_s(costs, 1), stated_s)
    chunk_s = inter_decom_s(costs.of(owner[chunk]), degree[chunk])
    for first, times_s in listed:
        chunk_s[first : first + len(times_s)] = times_s
    time_s = sequential_s[owner]
    time_s[chunk], time_s[fused] = chunk_s, fused_s
    return Candidates(
        costs=costs,
        count=np.array([operator.count for operator in operators], dtype=np.float64),
        starts=np.concatenate(([0], np.cumsum(counts))),
        kind=kind,
        degree=degree,
        variant=variant,
        time_s=time_s,
        sequential_s=sequential_s,
    )


def _listed_s(operator: Operator, chunks: tuple[int, ...]) -> list[float]:
    times = {point.degree: point.time_s for point in operator.inter_decom_table or ()}
    return [times[d] for d in chunks]
