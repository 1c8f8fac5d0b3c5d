"""What the problem lets a plan move, and how uneven it lets loads be."""

from __future__ import annotations

import math

from planner.papers.hiermoe.problem import HiermoeProblem

TOLERANCE = 1e-9
"""A limit in bytes or assignments may be exceeded by this much, relative: rounding."""


def move_budget(problem: HiermoeProblem) -> int | None:
    """Experts that may come to another rank, all layers together; None where nothing limits them."""
    search, expert_bytes = problem.search, problem.costs.expert_bytes
    budgets = [] if search.max_moved_experts is None else [search.max_moved_experts]
    if search.max_moved_bytes is not None and expert_bytes:
        budgets.append(math.floor(search.max_moved_bytes * (1 + TOLERANCE) / expert_bytes))
    return min(budgets, default=None)


def load_limit(problem: HiermoeProblem, total_load: float) -> float:
    """The most assignments that a rank may have, given those of all; infinite where nothing limits them."""
    ratio = problem.search.max_load_ratio
    return math.inf if ratio is None else ratio * total_load / problem.topology.gpus * (1 + TOLERANCE)


def charges_load(problem: HiermoeProblem) -> bool:
    """Whether the objective (5) charges the largest rank load anything."""
    return problem.objective.compute_multiplier * problem.costs.compute_s_per_assignment > 0
