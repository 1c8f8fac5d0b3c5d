"""Memory: time to place states over one to four dimensions with one to eight groups, and of the byte formulas.

Times are of a warm process, each the best of some runs. The plain search is the reference: one placement after another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from measure import best_of

from planner.memory.activations import Cut, layer_bytes
from planner.paper import DeriveOptions
from planner.papers.memory.check import check
from planner.papers.memory.cost import derive
from planner.papers.memory.derived import MemoryDerivedProblem
from planner.papers.memory.engines import solve
from planner.papers.memory.placements import placements
from planner.papers.memory.problem import MemoryProblem
from planner.validation import validate
from profiles.geometry import load_model
from solvers.report import Limits

Document = dict[str, Any]

DIMS, GROUPS = (1, 2, 3, 4), (1, 2, 8)
MODELS = (("llama-3.1-70b", {"tp": 4, "pp": 4}), ("deepseek-v3", {"ep": 64}), ("wan2.1-14b", {"cp": 4}))
LAYOUTS = 100_000


def main(smoke: bool) -> None:
    """Print times by shape, then of whole models from a layout, then a formula call per layout."""
    runs = 1 if smoke else 5
    print(f"{'dims':>4s} {'groups':>6s} {'of':>4s} {'validate':>8s} {'search':>7s} {'check':>6s} {'plain ms':>8s}")
    for dims in DIMS[:2] if smoke else DIMS:
        for groups in GROUPS[:1] if smoke else GROUPS:
            print(_row(placed_document(dims, groups), runs), flush=True)
    print(f"\n{'model':14s} {'layout':22s} {'derive':>7s} {'search':>7s} {'check':>6s}  ms")
    for model, layout in MODELS[:1] if smoke else MODELS:
        print(_whole_model(model, layout, runs), flush=True)
    print(f"\na layer's activations, {LAYOUTS:,} layouts in one call: {_formula_us(runs):.3f} µs a layout")


def placed_document(dims: int, groups: int) -> Document:
    """13e9 parameters in equal groups over 64 devices, with a host; tight enough that plain data parallelism fails."""
    size = (64, 8, 4, 2)[dims - 1]
    every = [
        {"id": f"d{place}", "size": size, "alpha_s": 1e-6 * 3**place, "beta_s_per_byte": 4e-12 * 3**place}
        for place in range(dims)
    ]
    share = 13e9 / groups
    return {
        "paper": "memory",
        "num_micro_batches": 4,
        "capacity_bytes": 80e9,
        "other_bytes": 2e9,
        "host": {"capacity_bytes": 256e9, "beta_s_per_byte": 4e-11, "update_s_per_byte": 1e-11},
        "groups": [
            {
                "id": f"g{place}",
                "parameters_bytes": 2 * share,
                "gradients_bytes": 4 * share,
                "optimizer_bytes": 12 * share,
                "parameters_unit_bytes": 7e8 / groups,
                "gradients_unit_bytes": 14e8 / groups,
                "dims": every,
            }
            for place in range(groups)
        ],
        "activations": {
            "kept_bytes": 40e9,
            "materialised_bytes": 5e9,
            "recompute_s": 0.35,
            "unit_bytes": 2e9,
            "micro_batch_bytes": 40e9,
        },
    }


def _row(document: Document, runs: int) -> str:
    validated_s, problem = best_of(runs, lambda: validate(MemoryProblem, document).sorted())
    searched_s, (solution, _) = best_of(runs, lambda: solve(problem, None, Limits()))
    checked_s, violations = best_of(runs, lambda: check(problem, solution))
    plain_s, (plain, _) = best_of(1, lambda: solve(problem, "exact", Limits()))
    assert not violations
    assert plain == solution
    cells = f"{validated_s * 1e3:8.2f} {searched_s * 1e3:7.2f} {checked_s * 1e3:6.2f} {plain_s * 1e3:8.1f}"
    return f"{problem.num_dims:4d} {len(problem.groups):6d} {len(placements(problem)):4d} {cells}"


def _whole_model(model: str, layout: dict[str, int], runs: int) -> str:
    document = {
        "derive": {
            "model": model,
            "layout": layout,
            "batch": {"sequence_length": 4096, "num_micro_batches": 16},
            "profile": "h200-sxm",
            "extrapolate": "roofline",
            "cluster": {
                "num_ranks": 256,
                "gpus_per_node": 8,
                "inter_node": {"bandwidth_bytes_per_s": 50e9, "latency_s": 1e-5},
            },
        }
    }
    posed = validate(MemoryDerivedProblem, document)
    derived_s, derivation = best_of(runs, lambda: derive(posed, DeriveOptions()))
    problem = derivation.problem.sorted()
    searched_s, (solution, _) = best_of(runs, lambda: solve(problem, None, Limits()))
    checked_s, violations = best_of(runs, lambda: check(problem, solution))
    assert not violations
    return f"{model:14s} {layout!s:22s} {derived_s * 1e3:7.1f} {searched_s * 1e3:7.2f} {checked_s * 1e3:6.2f}"


def _formula_us(runs: int) -> float:
    kind = load_model("deepseek-v3").runs[-1].kind
    draw = np.random.default_rng(0)
    ranks = 2 ** draw.integers(0, 4, LAYOUTS)
    cut = Cut(tokens=4096.0 * 2 ** draw.integers(0, 4, LAYOUTS), tensor_ranks=ranks, norm_ranks=ranks)
    seconds, _ = best_of(runs, lambda: layer_bytes(kind, cut))
    return seconds / LAYOUTS * 1e6
