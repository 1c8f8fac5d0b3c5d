"""Compass: time to choose for the 288 operators, for up to 10,000 and for a whole model, beside a plain search.

Times are of a warm process, each the best of some runs: validation, search, check, and the rest of a plan from the
document to its bytes. The plain search is the reference: every degree of every operator, tried one by one.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from measure import best_of
from overlap_grid import grid_document

from planner.paper import DeriveOptions
from planner.papers.compass.baselines import baselines
from planner.papers.compass.candidates import candidates
from planner.papers.compass.cautions import warnings
from planner.papers.compass.certificate import bounds
from planner.papers.compass.check import check
from planner.papers.compass.cost import derive
from planner.papers.compass.derived import CompassDerivedProblem
from planner.papers.compass.engines import solve
from planner.papers.compass.formulation import exhausted
from planner.papers.compass.presentation import shares
from planner.papers.compass.problem import CompassProblem
from planner.papers.compass.solution import CompassSolution
from planner.validation import validate
from solvers.report import Limits

Document = dict[str, Any]

COUNTS = (100, 1_000, 10_000)
EXTENTS = (4096, 8192, 16384, 32768, 65536, 7200, 30240, 55440, 110880, 1 << 20)
"""Of random operators, cut by whole rows: 7 to 64 of their divisors are degrees."""
MODELS = (
    ("llama-3.1-70b", "h100-sxm", 8),
    ("qwen3-235b-a22b", "h200-sxm", 4),
    ("deepseek-v3", "b200-sxm", 8),
)
SEQUENCES = (2048, 8192)


def main(smoke: bool) -> None:
    """Print times by size, then what the grid gives, then whole models."""
    runs = 1 if smoke else 5
    print(
        f"{'operators':>9s} {'choices':>9s} {'validate':>8s} {'search':>7s} {'check':>7s} {'said':>7s} {'all ms':>7s} "
        f"{'growth':>6s} {'plain ms':>8s} {'x search':>8s}"
    )
    before = _row(grid_document(), runs, None)
    before = None
    for count in COUNTS[:1] if smoke else COUNTS:
        before = _row(random_document(count), runs, before)
    _grid()
    print(f"\n{'model':18s} {'profile':9s} {'p':>2s} {'tokens':>6s} {'derive':>7s} {'all ms':>7s} {'gain':>6s}  chosen")
    for model, profile, tp_size in MODELS[:1] if smoke else MODELS:
        for tokens in SEQUENCES[:1] if smoke else SEQUENCES:
            print(_whole_model(model, profile, tp_size, tokens, runs), flush=True)


def random_document(count: int) -> Document:
    """Operators of all sizes and both regimes, half of them with a fused kernel, a quarter with a table."""
    draw = np.random.default_rng(0)
    return {"paper": "compass", "operators": [_random_operator(draw, f"op{place:05d}") for place in range(count)]}


def _random_operator(draw: np.random.Generator, identity: str) -> Document:
    extent = int(draw.choice(EXTENTS))

    def stage() -> dict[str, float]:
        return {"startup_s": float(10 ** draw.uniform(-6, -4)), "payload_s": float(10 ** draw.uniform(-4, -2))}

    comm, gemm = stage(), stage()
    alone_s = comm["payload_s"] + gemm["payload_s"]
    operator: Document = {
        "id": identity,
        "op": "ag_gemm" if draw.random() < 0.5 else "gemm_rs",
        "tp_size": 8,
        "split_extent": extent,
        "max_degree": 192,
        "comm": comm,
        "gemm": gemm,
        "contention": {"comm": float(draw.uniform(1, 1.3)), "gemm": float(draw.uniform(1, 1.2))},
    }
    if draw.random() < 0.5:
        operator["fused"] = [{"id": "single_ring", "time_s": alone_s * float(draw.uniform(0.5, 1.1))}]
    if draw.random() < 0.25:
        degrees = [d for d in (2, 3, 4, 6, 8, 16, 32) if extent % d == 0]
        times = [alone_s * float(draw.uniform(0.6, 1.2)) for _ in degrees]
        operator["inter_decom_table"] = [{"degree": d, "time_s": t} for d, t in zip(degrees, times, strict=True)]
    return operator


def _row(document: Document, runs: int, before: float | None) -> float:
    """One line of times; returns seconds of all."""
    validated_s, problem = best_of(runs, lambda: validate(CompassProblem, document).sorted())
    # In a copy, which keeps nothing of the runs before.
    searched_s, (solution, _) = best_of(runs, lambda: solve(problem.sorted(), None, Limits()))
    checked_s, violations = best_of(runs, lambda: check(problem, solution))
    said_s, _ = best_of(runs, lambda: _said(problem, solution))
    assert not violations
    plain_s, _ = best_of(runs, lambda: exhausted(problem))
    assert solve(problem, "exact", Limits())[0] == solution
    all_s, _ = best_of(runs, lambda: _whole(document))
    columns = [validated_s, searched_s, checked_s, said_s]
    choices = len(candidates(problem).kind)
    growth = "" if before is None else f"{all_s / before:.1f}"
    cells = " ".join(f"{each * 1e3:7.1f}" for each in columns[1:])
    print(
        f"{len(problem.operators):9,d} {choices:9,d} {validated_s * 1e3:8.1f} {cells} {all_s * 1e3:7.1f} {growth:>6s} "
        f"{plain_s * 1e3:8.1f} {plain_s / searched_s:8.1f}",
        flush=True,
    )
    return all_s


def _whole(document: Document) -> None:
    """A plan from its document, as one run of it takes: what the search made is there for the rest."""
    problem = validate(CompassProblem, document).sorted()
    solution, _ = solve(problem, None, Limits())
    assert not check(problem, solution)
    _said(problem, solution)


def _said(problem: CompassProblem, solution: CompassSolution) -> None:
    """The rest of a plan: the bounds of its certificate, its warnings, its shares by source."""
    bounds(problem, solution, False, 1.0)
    warnings(problem, solution)
    shares(problem, solution)


def _grid() -> None:
    """Choices by strategy, and the baselines over the plan."""
    problem = validate(CompassProblem, grid_document()).sorted()
    solution, _ = solve(problem, None, Limits())
    chosen = Counter(choice.variant or choice.strategy for choice in solution.choices)
    counts = ", ".join(f"{name} {number}" for name, number in sorted(chosen.items()))
    total_s = solution.metrics.total_time_s
    over = ", ".join(
        f"{each.name} {each.objective / total_s:.3f}" for each in baselines(problem, Limits()) if each.objective
    )
    print(f"\nthe 288: {total_s:.6f} s; {counts}\nbaselines over it: {over}")


def _whole_model(model: str, profile: str, tp_size: int, tokens: int, runs: int) -> str:
    document = {
        "paper": "compass",
        "derive": {
            "profile": profile,
            "model": model,
            "tp_size": tp_size,
            "sequence_tokens": tokens,
            "extrapolate": "roofline",
            "cluster": {"num_ranks": 8, "gpus_per_node": 8},
        },
    }

    def derived() -> CompassProblem:
        return derive(validate(CompassDerivedProblem, document), DeriveOptions()).problem

    def planned(problem: CompassProblem) -> CompassSolution:
        solution, _ = solve(problem, None, Limits())
        assert not check(problem, solution)
        _said(problem, solution)
        return solution

    derived_s, problem = best_of(runs, derived)
    planned_s, solution = best_of(runs, lambda: planned(problem))
    all_s = derived_s + planned_s
    gain = solution.metrics.sequential_total_time_s / solution.metrics.total_time_s
    degrees = Counter(choice.degree for choice in solution.choices)
    chosen = ", ".join(f"{n} of d={d}" if d > 1 else f"{n} in sequence" for d, n in sorted(degrees.items()))
    return (
        f"{model:18s} {profile:9s} {tp_size:2d} {tokens:6d} {derived_s * 1e3:7.1f} {all_s * 1e3:7.1f} "
        f"{gain:6.3f}  {chosen}"
    )
