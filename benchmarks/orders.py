"""FinDEP: how far the better of its two orders is from the best of any order, by CP-SAT on two and three layers.

Candidates are random, not only plans: m_a, r1 <= 4 and r2 are drawn too. Then, of the plans of the same problems.
"""

from __future__ import annotations

import random
import statistics

from layer_costs import random_problem

from planner.papers.findep.formulation import ROUNDING, free_order, too_large
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.scan import scan
from solvers.report import Limits

SEEDS = range(80)
BOX = (4, 4, 4)


def main(smoke: bool) -> None:
    """Print the share that is optimal, and the mean and the worst gap."""
    seeds = SEEDS[:4] if smoke else SEEDS
    print(f"{'candidates':22s} {'n':>3s} {'proved':>6s} {'optimal':>7s} {'mean gap':>8s} {'worst':>7s}")
    for name, of_plans in (("any", False), ("plans", True)):
        for layers in (2, 3):
            _print(f"{name}, {layers} layers", [_gap(seed, layers, of_plans) for seed in seeds])


def _print(name: str, rows: list[tuple[float, bool]]) -> None:
    gaps = [gap for gap, _ in rows]
    optimal, proved = sum(gap <= ROUNDING for gap in gaps), sum(proved for _, proved in rows)
    mean, worst = statistics.mean(gaps), max(gaps)
    print(f"{name:22s} {len(rows):3d} {proved:6d} {optimal:7d} {mean:8.3%} {worst:7.2%}", flush=True)


def _gap(seed: int, layers: int, of_plans: bool) -> tuple[float, bool]:
    """The better order over the best of any, less 1, and whether CP-SAT proved that best."""
    problem = random_problem("orders", seed, layers, BOX, "real")
    m_a, r1, r2 = _plan(problem) if of_plans else _any(seed, layers)
    split = problem.splits[0]
    found = [free_order(problem, split, m_a, r1, r2, layers, Limits(), order) for order in problem.search.orders]
    best = min(case.makespan_s for case in found)
    return min(case.of_order_s for case in found) / best - 1, any(case.proved for case in found)


def _plan(problem: FindepProblem) -> tuple[int, int, int]:
    plan = scan(problem).best
    if plan is None:
        raise ValueError("a problem without limits has a plan")
    return plan.m_a, plan.r1, plan.r2


def _any(seed: int, layers: int) -> tuple[int, int, int]:
    draw = random.Random(f"findep/candidate/{seed}")
    while True:
        m_a, r1, r2 = (draw.randint(1, most) for most in BOX)
        if too_large(layers, r1, r2) is None:
            return m_a, r1, r2
