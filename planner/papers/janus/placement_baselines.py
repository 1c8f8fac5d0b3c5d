"""What simpler rules give of a placement: the page's copies where they come in order, and by its printed search."""

from __future__ import annotations

import numpy as np

from planner.errors import InfeasibleError
from planner.paper import Baseline
from planner.papers.janus.experts.copies import placed
from planner.papers.janus.experts.replicas import replica_counts
from planner.papers.janus.experts.statistics import of_pairs
from planner.papers.janus.placing import balanced, refuse_slots, solve_placement
from planner.papers.janus.problem import PlacementProblem
from planner.papers.janus.solution import JanusSolution, PlacementSolution
from solvers.report import Limits

Found = Baseline[JanusSolution]


def placement_baselines(problem: PlacementProblem, limits: Limits) -> list[Found]:
    """``in_order`` and ``paper``, of the same copies; without an objective where there are too few slots."""
    try:
        refuse_slots(problem)
    except InfeasibleError as error:
        return [Baseline(name, None, error.message, feasible=False) for name in ("in_order", "paper")]
    return [_in_order(problem), _paper(problem, limits)]


def _in_order(problem: PlacementProblem) -> Found:
    """Copies dealt to the instances by ascending expert; of one expert there are no more than instances."""
    n, E = problem.expert_instances, problem.num_experts
    statistics = of_pairs(problem.expert_load, problem.coactivation)
    copies = replica_counts(statistics.load, n, problem.slots_per_instance)
    found = placed(copies, np.repeat(np.arange(E), copies).reshape(-1, n).T, statistics, 0.0)
    solution = PlacementSolution(
        objective=found.largest,
        replicas=tuple(found.copies.tolist()),
        placement=tuple(tuple(row) for row in found.table.tolist()),
        a_max_per_batch=balanced(problem, found),
    )
    return Baseline("in_order", found.largest, "experts dealt to the instances in order", solution)


def _paper(problem: PlacementProblem, limits: Limits) -> Found:
    solution, _ = solve_placement(problem, "paper", limits)
    return Baseline("paper", solution.objective, "greedy, then swaps out of the worst instance", solution)
