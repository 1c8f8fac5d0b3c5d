"""The lower bounds behind a plan's certificate (page 4.6)."""

from __future__ import annotations

from planner.paper import Bound
from planner.papers.zellige.bounds import quick_bounds
from planner.papers.zellige.count_bound import count_bound
from planner.papers.zellige.instance import compile_instance
from planner.papers.zellige.problem import ZelligeProblem
from planner.papers.zellige.solution import ZelligeSolution

CLOSE = 1e-9
"""A plan this close to a quick bound needs no stronger one."""
CERTIFY_EFFORT = 20.0
"""How much more the count bound may search when a certificate is asked for."""
CERTIFY_MODES = 3000
"""Up to how many (kind, mode) pairs it is then tried: tens of seconds instead of one."""


def bounds(problem: ZelligeProblem, solution: ZelligeSolution, certify: bool, effort: float) -> tuple[Bound, ...]:
    """LB0 to LB4, all without a solver; ``certify`` lets LB4 search longer and take on more lengths."""
    instance = compile_instance(problem)
    quick = quick_bounds(instance)
    makespan_s = solution.metrics.makespan_s
    if max(bound.value for bound in quick) >= makespan_s * (1 - CLOSE):
        return quick
    if certify:
        return (*quick, count_bound(instance, makespan_s, CERTIFY_EFFORT * effort, CERTIFY_MODES))
    return (*quick, count_bound(instance, makespan_s))
