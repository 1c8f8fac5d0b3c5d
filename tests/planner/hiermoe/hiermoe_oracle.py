"""The referee: equations 1 to 5 in plain Python, one token at a time, as the page words them; and all placements."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

Problem = dict[str, Any]
Tokens = list[tuple[int, Sequence[int]]]
Table = Sequence[int]


def tokens_of(layer: dict[str, Any]) -> Tokens:
    """Tokens of a layer whose routing is written out."""
    routing = layer["routing"]
    return list(zip(routing["source_rank"], routing["expert_ids"], strict=True))


def level_groups(problem: Problem) -> list[int]:
    """U[0..D-1], and G for the ranks themselves."""
    return [*problem["topology"]["level_groups"], problem["topology"]["gpus"]]


def copy_rank(problem: Problem, table: Table, source: int, expert: int) -> int:
    """The rank of the copy that shares the deepest level; of several, by slot, copy s mod their number."""
    G = problem["topology"]["gpus"]
    ranks = [slot * G // len(table) for slot, held in enumerate(table) if held == expert]

    def depth(rank: int) -> int:
        return sum(rank * n // G == source * n // G for n in level_groups(problem))

    deepest = max(depth(rank) for rank in ranks)
    equal = [rank for rank in ranks if depth(rank) == deepest]
    return equal[source % len(equal)]


def exchange_s(problem: Problem, layer: dict[str, Any], table: Table, d: int, *, deduplicated: bool = True) -> float:
    """Equations 1 and 2."""
    G, U, links = problem["topology"]["gpus"], level_groups(problem), problem["costs"]["links"]
    hops = [(links["inter"][i - 1], U[i], U[i] // U[i - 1], G // U[i - 1]) for i in range(1, d)]
    last = links["flat"] if d == 1 else links["intra"][d - 2]
    hops.append((last, G, G // U[d - 1], G // U[d - 1]))
    total = 0.0
    for link, groups, participants, classes in hops:
        p: Counter[tuple[int, int]] = Counter()
        for source, experts in tokens_of(layer):
            there = [copy_rank(problem, table, source, e) * groups // G for e in experts]
            p.update((b, source % classes) for b in (set(there) if deduplicated else there))
        peak = max(p.values(), default=0)
        total += (
            link["latency_s"] + participants * peak * problem["costs"]["token_bytes"] / link["bandwidth_bytes_per_s"]
        )
    return total


def peak_load(problem: Problem, layer: dict[str, Any], table: Table) -> int:
    """The most assignments of a rank."""
    loads = Counter(copy_rank(problem, table, s, e) for s, experts in tokens_of(layer) for e in experts)
    return max(loads.values(), default=0)


def objective_s(problem: Problem, layer: dict[str, Any], table: Table, d: int) -> float:
    """Equation 5."""
    weights = problem.get("objective", {})
    kappa = problem["costs"].get("compute_s_per_assignment", 0.0)
    a2a, compute = weights.get("a2a_multiplier", 1.0), weights.get("compute_multiplier", 1.0)
    return a2a * exchange_s(problem, layer, table, d) + compute * kappa * peak_load(problem, layer, table)


def best_s(problem: Problem, layer: dict[str, Any], table: Table) -> float:
    """The least objective of a placement over all d."""
    D = len(problem["topology"]["level_groups"])
    return min(objective_s(problem, layer, table, d) for d in range(1, D + 1))


def all_tables(gpus: int, experts: int, slots_in_all: int) -> Iterator[tuple[int, ...]]:
    """Every placement without two copies on a rank, names and all."""
    slots = slots_in_all // gpus
    for ranks in itertools.product(itertools.combinations(range(experts), slots), repeat=gpus):
        table = tuple(e for rank in ranks for e in rank)
        if len(set(table)) == experts:
            yield table


def count_tables(experts: int, gpus: int) -> int:
    """Placements without replicas, names and all."""
    slots = experts // gpus
    return math.factorial(experts) // math.factorial(slots) ** gpus
