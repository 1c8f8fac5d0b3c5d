"""The independent check of a plan (page, "Check"), from problem and solution alone.

Nothing that planned takes part: seconds, fixed points, bytes, copies and the balance of batches are computed again
from the page, and that no cheaper pools will do is proved again by trying them all.
"""

from __future__ import annotations

import numpy as np

from planner.findings import Findings
from planner.paper import Violation
from planner.papers.janus.checks.placing import check_placing
from planner.papers.janus.checks.scaling import check_scaling
from planner.papers.janus.checks.series import check_series
from planner.papers.janus.problem import JanusProblem, PlacementProblem, ScalingProblem, SeriesProblem
from planner.papers.janus.solution import JanusSolution, PlacementSolution, ScalingSolution, SeriesSolution

VIOLATIONS: tuple[str, ...] = (
    "task_mismatch",
    "interval_count",
    "unknown_device",
    "not_a_positive_integer",
    "expert_slots",
    "gpu_limit",
    "launcher_rules",
    "a_max_table_missing",
    "routing_missing",
    "batch_range",
    "not_a_fixed_point",
    "not_the_smallest_fixed_point",
    "tpot_mismatch",
    "tpot_slo",
    "attention_memory",
    "expert_memory",
    "memory_mismatch",
    "total_mismatch",
    "batch_per_instance_mismatch",
    "throughput_mismatch",
    "a_max_mismatch",
    "layer_mismatch",
    "replica_rule",
    "replica_count",
    "slots_exceeded",
    "duplicate_expert",
    "unknown_expert",
    "placement_shape",
    "a_max_per_batch",
    "expert_map_set",
    "objective_mismatch",
    "gpu_hours_mismatch",
    "alternatives_not_sorted",
    "alternatives_incomplete",
    "not_minimal",
)
"""Every code the check can report, in the order it reports them."""


def check(problem: JanusProblem, solution: JanusSolution) -> list[Violation]:
    """Everything the solution says that the problem refutes; empty for a correct plan. At most 100 of each code.

    Figures agree within 1e-9 relative, fixed points within 1e-6. Pools that cannot be used are not computed again.
    """
    found = Findings()
    # Batches and bytes of any size may be stated; what overflows disagrees with every stated figure.
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(problem, ScalingProblem) and isinstance(solution, ScalingSolution):
            check_scaling(problem, solution, found)
        elif isinstance(problem, SeriesProblem) and isinstance(solution, SeriesSolution):
            check_series(problem, solution, found)
        elif isinstance(problem, PlacementProblem) and isinstance(solution, PlacementSolution):
            check_placing(problem, solution, found)
        else:
            found.add("task_mismatch", "the solution answers another task than the problem states", "task")
    return found.in_order(VIOLATIONS)


__all__ = ["VIOLATIONS", "check"]
