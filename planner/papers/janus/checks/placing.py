"""The placement of one layer's experts, looked at again."""

from __future__ import annotations

import numpy as np

from planner.findings import Findings
from planner.papers.janus.checks.balance import busiest
from planner.papers.janus.checks.offers import agree
from planner.papers.janus.checks.replicas import Seats, check_placement, largest_coactivation
from planner.papers.janus.problem import PlacementProblem
from planner.papers.janus.solution import PlacementSolution


def check_placing(problem: PlacementProblem, solution: PlacementSolution, found: Findings) -> None:
    """Note what is wrong with a placement."""
    E, n_e, C = problem.num_experts, problem.expert_instances, problem.slots_per_instance
    if n_e * C < E:
        found.add("expert_slots", f"{n_e} instances have {n_e * C} slots for {E} experts", "placement")
        return
    if len(problem.expert_load) != E:
        found.add("routing_missing", "the problem's routing has not been read into loads and co-activations", "routing")
        return
    seats = Seats(E, n_e, C)
    if not check_placement(solution.replicas, solution.placement, problem.expert_load, seats, "", found):
        return
    together = np.zeros((E, E))
    for one, other, weight in problem.coactivation:
        together[one, other] = together[other, one] = weight
    worst = largest_coactivation(solution.placement, together)
    if not agree(solution.objective, worst):
        found.add("objective_mismatch", f"stated {solution.objective!r}, recomputed {worst!r}", "objective")
    loads = [busiest(solution.placement, batch) for batch in problem.batches]
    if len(loads) != len(solution.a_max_per_batch):
        message = f"expected one for each of {len(loads)} batches, got {len(solution.a_max_per_batch)}"
        found.add("a_max_per_batch", message, "a_max_per_batch")
    for index, (stated, load) in enumerate(zip(solution.a_max_per_batch, loads, strict=False)):
        if load is not None and stated != load:
            found.add("a_max_per_batch", f"stated {stated}, recomputed {load}", f"a_max_per_batch.{index}")
