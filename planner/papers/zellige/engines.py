"""The methods of the paper and the choice between them (page 4.4, 4.5, 4.7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version

from planner.papers.zellige.baselines import cheap_placements
from planner.papers.zellige.bounds import quick_bounds
from planner.papers.zellige.fast import Found, better, solve_fast
from planner.papers.zellige.infeasibility import diagnose, prove_packing
from planner.papers.zellige.instance import Instance, Placement, compile_instance
from planner.papers.zellige.problem import ZelligeProblem
from planner.papers.zellige.segments import build_solution
from planner.papers.zellige.solution import ZelligeSolution
from solvers.report import Limits, Report, Status

SMALL_RANKS = 8
SMALL_VARIABLES = 100
"""At most this many ranks and (kind, mode, rank set) counts: the reference proves most such problems in a second."""
SMALL_SHARE = 0.04
"""Share of the reference's budget that is spent where nobody asked for it by name."""


def solve(problem: ZelligeProblem, method: str | None, limits: Limits) -> tuple[ZelligeSolution, Report]:
    """Place the batch by a method, by default ``fast``, or ``reference`` where the problem is small.

    Raises InfeasibleError (no_rank_set, memory_single_sequence, memory_total, memory_packing) and LimitError.
    """
    instance = compile_instance(problem)
    diagnose(instance)
    if method is not None:
        placement, report = METHODS[method](instance, limits)
    elif is_small(instance):
        placement, report = reference(instance, limits, SMALL_SHARE)
    else:
        placement, report = fast(instance, limits)
    return build_solution(instance, placement), report


def is_small(instance: Instance) -> bool:
    """Whether the exact reference is the default."""
    sets = sum(len(instance.blocks[mode.config]) for kind in instance.kinds for mode in kind.modes)
    return instance.num_ranks <= SMALL_RANKS and sets <= SMALL_VARIABLES


def fast(instance: Instance, limits: Limits) -> tuple[Placement, Report]:
    """Construct and search; never worse than a cheap baseline. No solver unless memory defeats every rule."""
    bound_s = max(bound.value for bound in quick_bounds(instance))
    found = solve_fast(instance, bound_s, effort=limits.effort, seed=limits.seed, gap=limits.gap)
    for candidate in cheap_placements(instance, found.makespan_s if found else math.inf):
        if candidate.feasible and candidate.placement is not None and candidate.makespan_s is not None:
            found = better(instance, found, Found(candidate.placement, candidate.makespan_s))
    if found is None:
        found = Found(*prove_packing(instance, limits))
    report = Report(Status.FEASIBLE, "construct-and-search", "fast", version("numpy"), found.makespan_s)
    return found.placement, report


def reference(instance: Instance, limits: Limits, share: float = 1.0) -> tuple[Placement, Report]:
    """The exact compact form by CP-SAT over all sequences, hinted by the fast engine, on a share of its budget."""
    from planner.papers.zellige import formulation

    hint, _ = fast(instance, limits)
    return formulation.reference(instance, replace(limits, effort=limits.effort * share), hint, _epsilon(instance, 0.0))


def two_stage(instance: Instance, limits: Limits) -> tuple[Placement, Report]:
    """The paper's own method: CP-SAT for the anchors, the headroom rule for the fillers."""
    from planner.papers.zellige.two_stage import solve_two_stage

    return solve_two_stage(instance, limits, _epsilon(instance, 1e-3))


def _epsilon(instance: Instance, default: float) -> float:
    stated = instance.problem.search.split_epsilon
    return default if stated is None else stated


METHODS: dict[str, Callable[[Instance, Limits], tuple[Placement, Report]]] = {
    "fast": fast,
    "reference": reference,
    "two_stage": two_stage,
}
