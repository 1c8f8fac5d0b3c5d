"""The lower bounds behind a plan's certificate: the sum over layers of each one's bound.

Limits on moves and loads only take placements away, so equation 10 holds with them. What the exact reference proves
lets each layer alone use all of the move budget, which is no less than what it can.
"""

from __future__ import annotations

import math

import numpy as np

from planner.paper import Bound
from planner.papers.hiermoe.bounds.layer_bound import layer_bound
from planner.papers.hiermoe.budget import move_budget
from planner.papers.hiermoe.exact.reference import exact_layer, is_small
from planner.papers.hiermoe.exchange.time import best_dimension
from planner.papers.hiermoe.instance import compile_case
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.solution import HiermoeSolution
from solvers.report import Limits

COUNTED = "least counts of any placement"
PROVED = "exact reference"
STAYS = "the only placement that moves nothing"
CERTIFY_EFFORT = 4.0
"""How much longer the exact reference may search where a certificate is asked for."""


def bounds(problem: HiermoeProblem, solution: HiermoeSolution, certify: bool, effort: float) -> tuple[Bound, ...]:
    """Equation 10; with ``certify`` also what the exact reference proves of layers small enough, the rest by it."""
    case = compile_case(problem)
    counted = [layer_bound(case, layer).objective_s for layer in case.layers]
    quick = Bound(math.fsum(counted), "combinatorial", COUNTED)
    if move_budget(problem) == 0:
        stay = math.fsum(best_dimension(case, layer, layer.current)[1] for layer in case.layers)
        return quick, Bound(stay, "exhaustive", STAYS)
    if not certify:
        return (quick,)
    placed = {layer.layer_id: layer for layer in solution.layers}
    proved, kinds = list(counted), set()
    for number, layer in enumerate(case.layers):
        reached = placed[layer.layer_id]
        if counted[number] >= reached.objective_s or not is_small(case, layer):
            continue
        hint = np.array(reached.physical_to_logical, dtype=np.int64)
        exact = exact_layer(case, layer, hint, Limits(effort=CERTIFY_EFFORT * effort), move_budget(problem))
        if exact.bound_s > proved[number]:
            proved[number] = exact.bound_s
            kinds.add(exact.kind)
    if not kinds:
        return (quick,)
    return quick, Bound(math.fsum(proved), "solver" if "solver" in kinds else "exhaustive", PROVED)
