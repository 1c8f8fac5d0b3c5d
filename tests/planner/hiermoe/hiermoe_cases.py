"""Problems of the page's golden cases (section 10), and random ones, as documents and typed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from planner.papers.hiermoe.problem import HiermoeProblem
from planner.validation import validate

Document = dict[str, Any]


def link(latency_s: float = 0.0, bandwidth_bytes_per_s: float = 1.0) -> Document:
    return {"latency_s": latency_s, "bandwidth_bytes_per_s": bandwidth_bytes_per_s}


def mask(tokens: Sequence[tuple[int, Sequence[int]]]) -> Document:
    """Routing of (source rank, experts) pairs."""
    return {
        "kind": "mask",
        "source_rank": [source for source, _ in tokens],
        "expert_ids": [list(experts) for _, experts in tokens],
    }


def document(
    gpus: int, num_experts: int, top_k: int, routing: Document, *, levels: Sequence[int] = (1,), **changes: Any
) -> Document:
    """One layer; latency 0, bandwidth 1 B/s, one byte a token, no compute cost. ``costs`` is merged."""
    D = len(levels)
    costs = {
        "kind": "explicit",
        "token_bytes": 1,
        "links": {"flat": link(), "inter": [link()] * (D - 1), "intra": [link()] * (D - 1)},
    } | changes.pop("costs", {})
    base = {
        "paper": "hiermoe",
        "format_version": "1.0",
        "topology": {"gpus": gpus, "level_groups": list(levels)},
        "num_experts": num_experts,
        "top_k": top_k,
        "costs": costs,
        "layers": [{"layer_id": 0, "routing": routing}],
    }
    return base | changes


def printed() -> Document:
    """The problem of section 6: contiguous gives 0.000257344 s, the plan of section 7 gives 0.000228672 s."""
    links = {"flat": link(2e-4, 2e9), "inter": [link(1.5e-4, 2e9)], "intra": [link(1e-4, 2e10)]}
    tokens = [(0, (0, 4)), (0, (1, 5)), (0, (2, 6)), (0, (3, 7))]
    return document(4, 8, 2, mask(tokens), levels=(1, 2), costs={"token_bytes": 14336, "links": links})


def golden_1() -> Document:
    """Contiguous 6, optimum [0,2 | 1,3] 4, which is the bound; one swap reaches it."""
    tokens = [(0, (0, 2)), (0, (0, 2)), (0, (1, 3)), (1, (1, 3)), (1, (0, 2)), (1, (1, 3))]
    return document(2, 4, 2, mask(tokens))


def golden_2() -> Document:
    """Contiguous 8 (smooth 10.5561), after one swap still 8 (9.8501), after two 4 (5.2780), which is the bound."""
    tokens = [(source, pair) for source in range(4) for pair in ((0, 4), (1, 5), (2, 6), (3, 7))]
    return document(4, 8, 2, mask(tokens))


def golden_3() -> Document:
    """Contiguous: t_1 = 9, t_2 = 7; with assignments instead of deduplicated counts 9 and 11."""
    tokens = [(source, (0, 1) if source < 2 else (2, 3)) for source in range(4) for _ in range(2)]
    links = {"flat": link(1.0), "inter": [link(1.0)], "intra": [link(1.0, 4.0)]}
    return document(4, 4, 2, mask(tokens), levels=(1, 2), costs={"links": links})


def golden_4(kappa_s: float) -> Document:
    """Contiguous 6 + 12 kappa, split pairs 8 + 8 kappa: the same at kappa = 0.5 s."""
    tokens = [(t % 2, (0, 1) if t < 6 else (2, 3)) for t in range(8)]
    return document(2, 4, 2, mask(tokens), costs={"compute_s_per_assignment": kappa_s})


GOLDEN_5_VALUES = {
    (0, 2, 0, 1): 7.0,
    (0, 1, 0, 2): 9.0,
}
"""Two of the six tables; of the other four two give 8 and two 11."""


def golden_5() -> Document:
    """One redundant slot: [0,2 | 0,1] gives 7 (peak 2, t = 4, load 3), the bound."""
    tokens = [(source, (expert,)) for source, expert in ((0, 0), (0, 0), (0, 1), (1, 0), (1, 0), (1, 2))]
    return document(2, 3, 1, mask(tokens), redundant_slots=1, costs={"compute_s_per_assignment": 1.0})


PAPER_LINKS = {
    "flat": link(0.722e-3, 1 / 5.70e-10),
    "inter": [link(0.497e-3, 1 / 5.29e-10), link(0.301e-3, 1 / 1.17e-10), link(0.149e-3, 1 / 2.06e-11)],
    "intra": [link(0.571e-3, 1 / 1.27e-10), link(0.114e-3, 1 / 2.63e-11), link(0.204e-3, 1 / 1.64e-11)],
}
"""Section 11: the paper's testbed."""


def golden_6(num_experts: int, token_bytes: int) -> Document:
    """Uniform routing. E=128, 4096 B: 18.3164, 13.0402, 12.3960, 12.8994 ms; flat without dedup 19.8480.
    E=256, 7168 B: 31.1250, 21.8756, 20.8953, 21.5926; flat without dedup 34.1925, H2 39.5885."""
    routing = {"kind": "uniform_expected", "tokens_per_rank": 1024}
    costs = {"token_bytes": token_bytes, "links": PAPER_LINKS}
    return document(32, num_experts, 8, routing, levels=(1, 4, 8, 16), costs=costs)


EPLB_LOADS = (
    (90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86),
    (20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27),
)
"""Golden 7: two layers of the public EPLB README; 16 slots, 4 groups, 2 nodes, 8 ranks."""
EPLB_TABLES = (
    (5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1),
    (7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1),
)


def golden_7() -> Document:
    """The EPLB README's loads as a problem of two layers, K = 1."""
    layers = [
        {
            "layer_id": layer,
            "routing": {
                "kind": "loads",
                "tokens_per_rank": sum(loads) / 8,
                "expert_load": [float(load) for load in loads],
            },
        }
        for layer, loads in enumerate(EPLB_LOADS)
    ]
    return document(8, 12, 1, {}, levels=(1, 2), redundant_slots=4, layers=layers)


def golden_8(expert_load: Sequence[float]) -> Document:
    """Recorded loads of 64 experts, 208,896 tokens, K = 8. Contiguous: rank imbalance 1.0864, t_1 1.035626 s,
    t_2 0.473719 s; LPT: 1.0206, 1.016409 s, 0.471572 s. Links of section 6."""
    routing = {"kind": "loads", "tokens_per_rank": 208_896 / 8, "expert_load": [float(load) for load in expert_load]}
    return document(
        8, 64, 8, routing, levels=(1, 2), costs={k: printed()["costs"][k] for k in ("token_bytes", "links")}
    )


def problem_of(document: Document) -> HiermoeProblem:
    """Typed, by way of JSON, as from a file; in canonical order."""
    return validate(HiermoeProblem, json.loads(json.dumps(document))).sorted()


def random_tokens(source: Generator, gpus: int, num_experts: int, top_k: int, tokens: int) -> Document:
    """Skewed routing with pairs that go together: weights over two decades, some tokens repeated."""
    weights = 10 ** source.uniform(-2, 0, num_experts)
    drawn: list[tuple[int, Sequence[int]]] = []
    for _ in range(tokens):
        if drawn and source.random() < 0.3:
            experts = drawn[int(source.integers(len(drawn)))][1]
        else:
            keys = np.log(weights) + source.gumbel(size=num_experts)
            experts = [int(e) for e in np.argsort(-keys)[:top_k]]
        drawn.append((int(source.integers(gpus)), experts))
    return mask(drawn)


_LEVELS = {1: [(1,)], 2: [(1,)], 4: [(1,), (1, 2)], 8: [(1,), (1, 2), (1, 4), (1, 2, 4)]}


def random_document(
    source: Generator,
    *,
    gpus: int | None = None,
    experts_per_gpu: int | None = None,
    tokens: int = 24,
    layers: int = 1,
    kinds: Sequence[str] = ("mask",),
    redundant: bool = False,
    kappa: bool | None = None,
) -> Document:
    """A small problem with costs over two decades; levels, K, tokens and multipliers as they come."""
    G = int(source.choice([1, 2, 4])) if gpus is None else gpus
    per_rank = int(source.integers(1, 4)) if experts_per_gpu is None else experts_per_gpu
    E = G * per_rank
    R = 0
    if redundant and G > 1:
        # At most E slots a rank, so that copies can be kept apart.
        R = G * int(source.integers(1, E - per_rank + 1)) if E - per_rank < 3 else G * int(source.integers(1, 3))
        if (E + R) // G < E and source.random() < 0.5:
            E, R = E - 1, R + 1
    levels = _LEVELS[G][int(source.integers(len(_LEVELS[G])))]
    K = int(source.integers(1, min(E, 4) + 1))
    D = len(levels)

    def cost() -> Document:
        latency = float(source.uniform(0, 2)) if source.random() < 0.5 else 0.0
        return link(latency, float(10 ** source.uniform(-1, 1)))

    def routing() -> Document:
        kind = str(source.choice(list(kinds)))
        if kind == "mask":
            count = 0 if source.random() < 0.03 else int(source.integers(1, tokens + 1))
            return random_tokens(source, G, E, K, count)
        if kind == "loads":
            load = random_loads(source, E, K, tokens * G)
            return {"kind": "loads", "tokens_per_rank": float(tokens), "expert_load": load}
        if kind == "zipf":
            return {
                "kind": "zipf",
                "tokens_per_rank": tokens // G + 1,
                "exponent": 1.2,
                "seed": int(source.integers(99)),
            }
        return {"kind": "uniform_expected", "tokens_per_rank": tokens}

    with_kappa = source.random() < 0.5 if kappa is None else kappa
    made = document(
        G,
        E,
        K,
        {},
        levels=levels,
        costs={
            "token_bytes": int(source.choice([1, 1, 3, 64])),
            "compute_s_per_assignment": float(10 ** source.uniform(-1, 1)) if with_kappa else 0.0,
            "links": {
                "flat": cost(),
                "inter": [cost() for _ in range(D - 1)],
                "intra": [cost() for _ in range(D - 1)],
            },
        },
        objective={
            "a2a_multiplier": float(source.choice([1.0, 1.0, 2.0, 4.0])),
            "compute_multiplier": float(source.choice([1.0, 3.0])),
        },
        layers=[{"layer_id": number, "routing": routing()} for number in range(layers)],
    )
    return made | ({"redundant_slots": R} if R else {})


def random_loads(source: Generator, num_experts: int, top_k: int, tokens: int) -> list[float]:
    """Loads that sum to T K, none above T."""
    share = 10 ** source.uniform(-1.5, 0, num_experts)
    load = np.zeros(num_experts)
    rest = float(tokens * top_k)
    open_ = np.ones(num_experts, dtype=bool)
    while rest > 1e-9 * tokens * top_k and open_.any():
        load[open_] += rest * share[open_] / share[open_].sum()
        over = load > tokens
        rest = float((load[over] - tokens).sum())
        load[over] = tokens
        open_ &= ~over
    return [float(value) for value in load]


def seeded(seed: int) -> Generator:
    return np.random.default_rng(seed)


def copied(document: Document) -> Document:
    """A copy that shares nothing with the original."""
    made: Document = json.loads(json.dumps(document))
    return made
