"""What the benchmarks measure: planning from the problem's bytes to the solution object, in a warm process."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from planner.documents import canonical_bytes, parse_document
from planner.envelope import dump_model
from planner.papers.zellige.baselines import cheap_placements
from planner.papers.zellige.bounds import quick_bounds
from planner.papers.zellige.count_bound import count_bound
from planner.papers.zellige.engines import solve
from planner.papers.zellige.instance import compile_instance
from planner.papers.zellige.longest_first import pure_dp
from planner.papers.zellige.problem import ZelligeProblem
from planner.validation import validate
from solvers.report import Limits


@dataclass(frozen=True)
class Measured:
    """One instance: times in seconds, gaps relative, ``over_baseline`` = best cheap baseline over plan."""

    sequences: int
    planning_s: float
    longest_first_s: float
    certify_s: float
    makespan_s: float
    quick_gap: float
    certified_gap: float
    over_baseline: float


def best_of(runs: int, action: Callable[[], Any]) -> tuple[float, Any]:
    """The fastest of some runs, garbage collection outside: the least disturbed one."""
    times = []
    result = None
    for _ in range(runs):
        gc.collect()
        start = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - start)
    return min(times), result


def plan_from_bytes(data: bytes, method: str = "fast") -> Any:
    """Parse, validate, sort, solve: what a training job waits for."""
    problem = validate(ZelligeProblem, parse_document(data, "problem.json")).sorted()
    return solve(problem, method, Limits())[0]


def measure(problem: ZelligeProblem, runs: int = 3) -> Measured:
    """Plan, certify and compare one instance."""
    data = canonical_bytes(dump_model(problem))
    planning_s, solution = best_of(runs, lambda: plan_from_bytes(data))
    instance = compile_instance(problem)
    longest_first_s, _ = best_of(runs, lambda: pure_dp(compile_instance(problem)))
    makespan_s = solution.metrics.makespan_s
    certify_s, count = best_of(1, lambda: count_bound(instance, makespan_s))
    quick = max(bound.value for bound in quick_bounds(instance))
    feasible = [c.makespan_s for c in cheap_placements(instance) if c.feasible and c.makespan_s is not None]
    return Measured(
        instance.num_sequences,
        planning_s,
        longest_first_s,
        certify_s,
        makespan_s,
        makespan_s / quick - 1,
        makespan_s / max(quick, count.value) - 1,
        min(feasible, default=float("nan")) / makespan_s,
    )


HEADER = (
    f"{'class':34s} {'n':>3s} {'plan ms med':>11s} {'max':>6s} {'x LPT':>6s} "
    f"{'gap% med':>9s} {'max':>7s} {'<=0.3%':>7s} {'LB4 ms':>7s} {'base/plan':>9s}"
)


def line(name: str, rows: Sequence[Measured]) -> str:
    """One line for a class of instances: medians, and the worst planning time and certified gap."""
    gaps = [row.certified_gap for row in rows]
    return (
        f"{name:34s} {len(rows):3d} {statistics.median(r.planning_s for r in rows) * 1e3:11.1f} "
        f"{max(r.planning_s for r in rows) * 1e3:6.1f} "
        f"{statistics.median(r.planning_s / r.longest_first_s for r in rows):6.1f} "
        f"{statistics.median(gaps) * 100:9.4f} {max(gaps) * 100:7.3f} "
        f"{sum(gap <= 0.003 for gap in gaps) / len(gaps):7.0%} "
        f"{statistics.median(r.certify_s for r in rows) * 1e3:7.0f} "
        f"{statistics.median(r.over_baseline for r in rows):9.3f}"
    )
