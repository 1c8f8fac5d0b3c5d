"""Co-activations of many shapes, placements found by trying all of them, and AEBS as the page words it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def symmetric(E: int, pairs: dict[tuple[int, int], float]) -> Floats:
    """w [E, E] of the pairs named."""
    together = np.zeros((E, E))
    for (one, other), weight in pairs.items():
        together[one, other] = together[other, one] = weight
    return together


def random_together(rng: Generator, E: int) -> Floats:
    """Dense, sparse, heavy-tailed or fractional co-activations."""
    kind = rng.integers(4)
    w = rng.integers(0, 100, (E, E)).astype(float)
    if kind == 1:
        w *= rng.random((E, E)) < 0.3
    elif kind == 2:
        w = np.floor(rng.lognormal(2, 1.5, (E, E)))
    elif kind == 3:
        w = rng.random((E, E))
    upper = np.triu(w, 1)
    return upper + upper.T


def placements(copies: list[int], slots: int, instances: int) -> Iterator[list[tuple[int, ...]]]:
    """Every way to give each expert its instances with at most ``slots`` on each."""
    used = [0] * instances
    chosen: list[tuple[int, ...]] = []

    def extend(expert: int) -> Iterator[list[tuple[int, ...]]]:
        if expert == len(copies):
            yield list(chosen)
            return
        for hosts in combinations(range(instances), copies[expert]):
            if all(used[g] < slots for g in hosts):
                for g in hosts:
                    used[g] += 1
                chosen.append(hosts)
                yield from extend(expert + 1)
                chosen.pop()
                for g in hosts:
                    used[g] -= 1

    yield from extend(0)


def largest(rows: list[list[int]], together: Floats) -> float:
    """max I(g), pair by pair."""
    return max(sum(float(together[e, f]) for e, f in combinations(row, 2)) for row in rows)


def least_of_all(copies: list[int], slots: int, instances: int, together: Floats) -> float:
    """The least max I(g) of all placements."""
    return min(
        largest([[e for e, hosts in enumerate(chosen) if g in hosts] for g in range(instances)], together)
        for chosen in placements(copies, slots, instances)
    )


def aebs(active: set[int], table: list[list[int]]) -> list[int]:
    """Loads by rule 10, word for word."""
    loads = [0] * len(table)
    hosts = {e: [g for g, row in enumerate(table) if e in row] for e in active}
    for e in sorted(active):
        if len(hosts[e]) == 1:
            loads[hosts[e][0]] += 1
    for e in sorted(active):
        if len(hosts[e]) > 1:
            loads[min(hosts[e], key=lambda g: (loads[g], g))] += 1
    return loads


def placement_document(**changes: Any) -> dict[str, Any]:
    """J11 of the page with a batch of two tokens."""
    document = {
        "paper": "janus",
        "task": "placement",
        "num_experts": 5,
        "expert_instances": 2,
        "slots_per_instance": 3,
        "expert_load": [6, 9, 4, 8, 3],
        "coactivation": [[0, 1, 5], [1, 2, 5], [2, 3, 1], [2, 4, 2]],
        "batches": [[[0, 1], [3, 4]]],
    }
    return document | changes


def traced_document(*routings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Four experts, two a token, two slots; a_max from the layers with these routings."""
    document = {
        "paper": "janus",
        "task": "scaling",
        "num_layers": 2,
        "num_experts": 4,
        "top_k": 2,
        "slots_per_instance": 2,
        "slo_tpot_s": 1.0,
        "demand_tokens_per_s": 1.0,
        "context_tokens": 0,
        "attention": {"floor_s": 1e-3, "per_request_s": 0.0, "per_cached_token_s": 0.0},
        "moe": {"per_expert_s": 1e-3, "base_s": 0.0},
        "comm": {"kind": "constant", "time_s": 0.0},
        "a_max": {"kind": "routing", "batch_grid": [1, 2]},
        "limits": {"max_attention_instances": 4, "max_expert_instances": 4, "max_total_instances": 8},
        "layers": [{"layer_id": index, "routing": routing} for index, routing in enumerate(routings)],
    }
    return document | changes


def mask(*tokens: tuple[int, ...]) -> dict[str, Any]:
    """Tokens written out."""
    return {"kind": "mask", "source_rank": [0] * len(tokens), "expert_ids": [list(token) for token in tokens]}
