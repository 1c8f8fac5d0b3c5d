"""HierMoE's placement search: statistics, pairs and swaps by size, a layer to swap-optimality beside one swap.

Times are of a warm process on routing drawn by topics, so that some experts go together and loads are skewed.
"""

from __future__ import annotations

import resource
import statistics
import time

import numpy as np
from measure import best_of

from planner.papers.hiermoe.exact.enumeration import tables
from planner.papers.hiermoe.exchange.hops import hops_of
from planner.papers.hiermoe.exchange.time import best_dimension
from planner.papers.hiermoe.instance import Case, LayerCase, Tokens, compile_case
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.swaps.descent import best_smooth
from planner.papers.hiermoe.swaps.moving_placement import MovingPlacement, rank_of_experts
from planner.papers.hiermoe.swaps.search import place_layer
from planner.papers.hiermoe.swaps.token_hop import TokenHop
from planner.papers.hiermoe.swaps.token_index import TokenIndex
from planner.validation import validate

SIZES = (
    (64, 16, (1, 2), 8_192),
    (128, 32, (1, 4), 8_192),
    (256, 64, (1, 8), 8_192),
    (256, 64, (1, 8), 65_536),
    (256, 64, (1, 4, 16), 65_536),
    (1024, 512, (1, 64), 65_536),
)
TOP_K = 8


def main(smoke: bool) -> None:
    """Print times by size, then how often local search alone is optimal on random layers of eight experts."""
    print(
        f"{'E':>5s} {'G':>4s} {'U':>10s} {'T':>6s} | {'per hop ms: state':>17s} {'statistics':>10s} | {'pairs ms':>8s} "
        f"{'swap ms':>7s} {'best swap ms':>12s} | {'layer s':>7s} {'swaps':>5s} {'moved':>5s} {'current':>8s} "
        f"{'one swap':>8s} {'optimal':>7s} {'peak MB':>7s}"
    )
    for size in SIZES[:1] if smoke else SIZES:
        print(_row(*size), flush=True)
    _small(5 if smoke else 100)


def layer_of(
    E: int, G: int, U: tuple[int, ...], T: int, *, top_k: int = TOP_K, seed: int = 0, topics: int = 16
) -> tuple[Case, LayerCase]:
    """A case without compute cost, links of a node and of what joins nodes, and a layer of T drawn tokens."""
    source = np.random.default_rng(seed)
    skew = -0.6 * np.log(1 + source.permutation(E))
    likes = 2.0 * source.normal(size=(topics, E))
    ids = np.empty((T, top_k), np.int32)
    for start in range(0, T, 4096):
        size = min(4096, T - start)
        score = skew + likes[source.integers(topics, size=size)] + source.gumbel(size=(size, E))
        ids[start : start + size] = np.argsort(-score, axis=1)[:, :top_k]
    tokens = Tokens(np.sort(ids, axis=1), np.sort(source.integers(G, size=T)).astype(np.int32))

    def link(latency_s: float, bandwidth: float) -> dict[str, float]:
        return {"latency_s": latency_s, "bandwidth_bytes_per_s": bandwidth}

    document = {
        "paper": "hiermoe",
        "topology": {"gpus": G, "level_groups": list(U)},
        "num_experts": E,
        "top_k": top_k,
        "costs": {
            "token_bytes": 4096,
            "links": {
                "flat": link(7e-4, 1.75e9),
                "inter": [link(5e-4, bandwidth) for bandwidth in (1.9e9, 9e9)[: len(U) - 1]],
                "intra": [link(3e-4, bandwidth) for bandwidth in (8e9, 38e9)[: len(U) - 1]],
            },
        },
        "layers": [{"layer_id": 0, "routing": {"kind": "uniform_expected", "tokens_per_rank": 1}}],
    }
    case = compile_case(validate(HiermoeProblem, document).sorted())
    return case, LayerCase(0, tokens, case.layers[0].current)


def _row(E: int, G: int, U: tuple[int, ...], T: int) -> str:
    case, layer = layer_of(E, G, U, T)
    assert isinstance(layer.routed, Tokens)
    index = TokenIndex(layer.routed, E)
    d, current_s = best_dimension(case, layer, layer.current)
    rank = rank_of_experts(case, layer.current)
    hops = hops_of(case, d)
    states = [best_of(3, lambda hop=hop: TokenHop(index, hop, rank, G)) for hop in hops]
    counted = [best_of(1, state.ready)[0] for _, state in states]
    placement = MovingPlacement(case, layer, index, layer.current, d)
    one, other = np.triu(rank[:, None] != rank).nonzero()
    placement.screened(one, other)
    pairs_s, _ = best_of(5, lambda: placement.screened(one, other))
    first_s, first = best_of(1, lambda: best_smooth(placement, None))
    best_s = min(first_s, best_of(3, lambda: best_smooth(placement, None))[0])
    swap_s, _ = best_of(4, lambda: placement.swap(first.r, first.f))
    start = time.perf_counter()
    placed = place_layer(case, layer)
    layer_s = time.perf_counter() - start
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{E:5d} {G:4d} {','.join(map(str, U)):>10s} {T:6d} | "
        f"{max(s for s, _ in states) * 1e3:17.1f} {max(counted) * 1e3:10.1f} | {pairs_s * 1e3:8.1f} "
        f"{swap_s * 1e3:7.1f} {best_s * 1e3:12.1f} | {layer_s:7.1f} {len(placed.swaps):5d} {placed.moved:5d} "
        f"{current_s / placed.objective_s:8.3f} {first.plain / placed.objective_s:8.3f} "
        f"{placed.swap_optimal!s:>7s} {peak_mb:7.0f}"
    )


def _small(instances: int) -> None:
    """Against every placement: E = 8 on 4 ranks in pairs."""
    over, ones = [], []
    for seed in range(instances):
        case, layer = layer_of(8, 4, (1, 2), 64, top_k=2, seed=seed, topics=4)
        best = min(best_dimension(case, layer, table)[1] for table in tables(case, renamed=True))
        over.append(place_layer(case, layer).objective_s / best - 1)
        ones.append(best_dimension(case, layer, layer.current)[1] / best - 1)
    print(
        f"\n{instances} layers of 8 experts: optimal in {sum(gap <= 1e-9 for gap in over)}, worst {max(over):.2%}; "
        f"the current placement is {statistics.median(ones):.1%} off (median)"
    )
