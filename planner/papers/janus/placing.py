"""The placement task: copies and placement of one layer's experts, each batch balanced by AEBS, and what is proved."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

import numpy as np

from planner.errors import InfeasibleError, LimitError, Relaxation
from planner.paper import Bound
from planner.papers.janus.experts.aebs import hosts_of, largest_loads
from planner.papers.janus.experts.copies import Placed, place, placed
from planner.papers.janus.experts.layers import refuse_large
from planner.papers.janus.experts.spectral import eigenvalue_bound
from planner.papers.janus.experts.statistics import Statistics, of_pairs
from planner.papers.janus.formulation import solve_model
from planner.papers.janus.problem import PlacementProblem
from planner.papers.janus.shown.words import many
from planner.papers.janus.solution import PlacementSolution
from solvers import cpsat
from solvers.report import Limits, Report, Status

PLACEMENT_METHODS = ("search", "paper", "exact")
"""Greedy, swaps and a walk (the default); the page's greedy and swaps alone; CP-SAT where it is small enough."""

PAIRS = 2**24
"""Swaps that the search of one layer looks at, at effort 1."""
TINY, SMALL, MOST_CELLS = 600, 8_192, 40_000
"""Experts squared x instances up to which the model is solved by the search itself, for a certificate, and at all."""
CERTIFY_EFFORT = 4.0
EXACT_EFFORT = 10.0
"""How much longer the model may take for a certificate, and where it is the method."""

SHARED = "neighbours that copies share"
EIGENVALUES = "eigenvalues of co-activation"
EVERYWHERE = "every expert is on every instance"
PROVED = "exact reference"


def solve_placement(problem: PlacementProblem, method: str | None, limits: Limits) -> tuple[PlacementSolution, Report]:
    """The placement by a method of PLACEMENT_METHODS, by default ``search``, and what was proved of it.

    Raises InfeasibleError (expert_slots), LimitError (exact_too_large, time_limit), BadInputError (too_large).
    """
    name = method or "search"
    refuse_slots(problem)
    statistics = of_pairs(problem.expert_load, problem.coactivation)
    n, C = problem.expert_instances, problem.slots_per_instance
    found = place(statistics, C, n, 0 if name == "paper" else int(PAIRS * limits.effort))
    bound, engine = _proved(statistics, found, n), "expert-placement"
    kind = "exhaustive" if problem.num_experts <= C else "fractional"
    if name == "exact" and _cells(problem) > MOST_CELLS:
        message = f"the exact model takes at most {MOST_CELLS:,} experts x experts x instances, got {_cells(problem):,}"
        raise LimitError(message, code="exact_too_large")
    most_cells = {"exact": MOST_CELLS, "search": TINY}.get(name, 0)
    if found.largest > bound and _cells(problem) <= most_cells:
        effort = limits.effort * (EXACT_EFFORT if name == "exact" else 1.0)
        found, bound = _exact(problem, statistics, found, bound, replace(limits, effort=effort))
        kind, engine = "solver", cpsat.ENGINE
    solution = _solution(problem, found)
    status = Status.OPTIMAL if found.largest <= bound else Status.FEASIBLE
    used = cpsat.engine_version() if engine == cpsat.ENGINE else version("numpy")
    return solution, Report(status, engine, name, used, found.largest, min(bound, found.largest), kind)


def placement_bounds(
    problem: PlacementProblem, solution: PlacementSolution, certify: bool, effort: float
) -> tuple[Bound, ...]:
    """What no placement of these copies is below, in co-activations; with ``certify`` also by CP-SAT where it is small.

    Copies are those of the page's rule, whose placement alone is chosen.
    """
    statistics = of_pairs(problem.expert_load, problem.coactivation)
    found = place(statistics, problem.slots_per_instance, problem.expert_instances, 0)
    if problem.slots_per_instance >= problem.num_experts:
        return (Bound(found.least, "exhaustive", EVERYWHERE, attained=True),)
    quick = [Bound(found.least, "fractional", SHARED)]
    proved = _proved(statistics, found, problem.expert_instances)
    if proved > found.least:
        quick.append(Bound(proved, "fractional", EIGENVALUES))
    if not certify or solution.objective <= proved or _cells(problem) > SMALL:
        return tuple(quick)
    found = place(statistics, problem.slots_per_instance, problem.expert_instances, int(PAIRS * effort))
    _, bound = _exact(problem, statistics, found, proved, Limits(effort=CERTIFY_EFFORT * effort))
    return (*quick, Bound(bound, "solver", PROVED))


def refuse_slots(problem: PlacementProblem) -> None:
    """Raise InfeasibleError (expert_slots) or BadInputError (too_large) where slots alone show it."""
    E, n, C = problem.num_experts, problem.expert_instances, problem.slots_per_instance
    needed = -(-E // C)
    if n < needed:
        raise InfeasibleError(
            f"{many(n, 'expert instance')} of {many(C, 'slot')} cannot hold {many(E, 'expert')}",
            code="expert_slots",
            where="expert_instances",
            required=needed,
            available=n,
            relaxation=Relaxation("expert_instances", needed, proven=True),
        )
    refuse_large(E, C, n)


def _cells(problem: PlacementProblem) -> int:
    return problem.num_experts**2 * problem.expert_instances


def _proved(statistics: Statistics, found: Placed, instances: int) -> float:
    """The best bound that needs no solver."""
    if found.largest <= found.least:
        return found.least
    return max(found.least, eigenvalue_bound(found.copies, instances, statistics.together))


def _exact(
    problem: PlacementProblem, statistics: Statistics, found: Placed, proved: float, limits: Limits
) -> tuple[Placed, float]:
    """The best of what was found and what the model finds, and the bound it proves."""
    answer = solve_model(
        found.copies,
        problem.slots_per_instance,
        problem.expert_instances,
        statistics.together,
        found.table,
        proved,
        limits,
    )
    if answer.timed_out and not limits.keep_best:
        raise LimitError(f"the time limit of {limits.time_limit_s} s ended the reference", code="time_limit")
    if answer.table is not None:
        better = placed(found.copies, answer.table, statistics, found.least)
        found = better if better.largest < found.largest else found
    return found, min(answer.bound, found.largest)


def _solution(problem: PlacementProblem, found: Placed) -> PlacementSolution:
    return PlacementSolution(
        objective=found.largest,
        replicas=tuple(found.copies.tolist()),
        placement=tuple(tuple(row) for row in found.table.tolist()),
        a_max_per_batch=balanced(problem, found),
    )


def balanced(problem: PlacementProblem, found: Placed) -> tuple[int, ...]:
    """a_max of each batch of the problem by AEBS."""
    if not problem.batches:
        return ()
    active = np.zeros((len(problem.batches), problem.num_experts), bool)
    for row, batch in zip(active, problem.batches, strict=True):
        row[[expert for token in batch for expert in token]] = True
    hosts = hosts_of(found.table, problem.num_experts)
    return tuple(largest_loads(active, hosts, problem.expert_instances).tolist())
