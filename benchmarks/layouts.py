"""Layout: time to price, search and check by number of GPUs, dense and with experts, and with or without uneven ends.

Times are of a warm process, each the best of some runs. Plain enumeration, the reference, tries the same layouts one
after another in full; it is run where they are few.
"""

from __future__ import annotations

from typing import Any

from measure import best_of

from planner.paper import DeriveOptions
from planner.papers.layout.check import check
from planner.papers.layout.cost import derive
from planner.papers.layout.derived import LayoutDerivedProblem
from planner.papers.layout.engines import solve
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.solution import LayoutSolution
from planner.validation import validate
from solvers.report import Limits

Document = dict[str, Any]

MODELS = {
    64: ("llama-3.1-70b", "qwen3-30b-a3b"),
    1024: ("llama-3.1-70b", "deepseek-v3"),
    16384: ("llama-3.1-405b", "deepseek-v3"),
}
"""A dense one and one with experts that fit on so many."""
PARTITIONS = (["even"], ["even", "ends"])
WIDE = {
    "tp": [1, 2, 4, 8],
    "cp": [1, 2, 4, 8, 16],
    "pp": [1, 2, 4, 8, 16, 32, 64],
    "vpp": [1, 2, 3, 4, 5, 6, 7, 8, 10],
    "zero_stage": [0, 1, 2, 3],
}
WIDE_EXPERTS = {"ep": [1, 2, 4, 8, 16, 32, 64, 128], "etp": [1, 2, 4, 8]}
"""The page's own searches; what they leave out has its default."""
PLAIN = {"cp": [1, 2], "pp": [1, 2, 4], "vpp": [1, 2], "zero_stage": [0, 1], "micro_batch": [1, 2]}
NARROW = {"tp": [4, 8], "cp": [1], "pp": [2, 4], "vpp": [1, 2], "zero_stage": [1], "recompute": ["none", "selective"]}


def main(smoke: bool) -> None:
    """Print times by size, then of searches small enough for the reference."""
    runs = 1 if smoke else 3
    columns = f"{'combinations':>12s} {'legal':>8s} {'fit':>8s} {'derive':>8s} {'search':>8s} {'check':>8s}"
    print(f"{'model':15s} {'GPUs':>6s} {'partitions':>11s} {'rows':>6s} {columns} {'µs each':>8s}  ms")
    for gpus in list(MODELS)[:1] if smoke else MODELS:
        for model, more in zip(MODELS[gpus], ({}, WIDE_EXPERTS), strict=True):
            for partitions in PARTITIONS[:1] if smoke else PARTITIONS:
                search = {**WIDE, **more, "partitions": partitions}
                print(_row(document(model, gpus, search), partitions, runs), flush=True)
    print("\nthe same answers by plain enumeration")
    for name, search in (("few", NARROW), ("more", PLAIN)):
        print(_beside_plain(name, document("llama-3.1-70b", 64, search), runs), flush=True)


def document(model: str, gpus: int, search: Document) -> Document:
    """Under no launcher's rules: the most layouts. Eight sequences a GPU, at least 2,048 of them."""
    return {
        "paper": "layout",
        "batch": {"global_batch_size": max(2048, gpus // 2), "sequence_length": 8192},
        "search": search,
        "derive": {
            "model": model,
            "cluster": {"preset": "dgx-h100", "nodes": gpus // 8, "tiers": {"fabric": {"latency_s": 1.2e-5}}},
            "extrapolate": "roofline",
            "overlap": {"dp": 0.5, "p2p": 0.0},
        },
    }


def _posed(given: Document, runs: int) -> tuple[float, LayoutProblem]:
    posed = validate(LayoutDerivedProblem, given)
    derived_s, derivation = best_of(runs, lambda: derive(posed, DeriveOptions()))
    return derived_s, derivation.problem.sorted()


def _solved(problem: LayoutProblem, method: str, runs: int) -> tuple[float, LayoutSolution]:
    seconds, (solution, _) = best_of(runs, lambda: solve(problem, method, Limits()))
    return seconds, solution


def _row(given: Document, partitions: list[str], runs: int) -> str:
    derived_s, problem = _posed(given, runs)
    searched_s, solution = _solved(problem, "search", runs)
    checked_s, violations = best_of(1, lambda: check(problem, solution))
    assert not violations
    legal = solution.legal or 0
    fit = legal - (solution.excluded or {}).get("memory", 0)
    counts = f"{problem.search.combinations:12,d} {legal:8,d} {fit:8,d}"
    times = f"{derived_s * 1e3:8.0f} {searched_s * 1e3:8.0f} {checked_s * 1e3:8.0f} {searched_s / legal * 1e6:8.2f}"
    head = f"{given['derive']['model']:15s} {problem.cluster.num_gpus:6,d} {'+'.join(partitions):>11s}"
    return f"{head} {len(problem.costs.rows):6,d} {counts} {times}"


def _beside_plain(name: str, given: Document, runs: int) -> str:
    _, problem = _posed(given, 1)
    searched_s, solution = _solved(problem, "search", runs)
    plain_s, plain = _solved(problem, "exhaustive", 1)
    assert plain == solution
    counts = f"{problem.search.combinations:,} combinations, {solution.legal:,} legal"
    return f"{name:5s} {counts}: {searched_s * 1e3:.1f} ms, plain {plain_s * 1e3:.0f} ms, {plain_s / searched_s:.0f} x"
