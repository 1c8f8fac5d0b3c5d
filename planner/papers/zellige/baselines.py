"""What simpler published rules give on the same problem (page section 5)."""

from __future__ import annotations

import math

from planner.paper import Baseline
from planner.papers.zellige.hybrid_cp import hybrid_cp
from planner.papers.zellige.instance import Instance, compile_instance
from planner.papers.zellige.knapformer import knapformer
from planner.papers.zellige.longest_first import Candidate, homogeneous_d, pure_cp, pure_dp
from planner.papers.zellige.problem import ZelligeProblem
from planner.papers.zellige.segments import build_solution
from planner.papers.zellige.solution import ZelligeSolution
from solvers.report import Limits

NAMES = ("pure_dp", "pure_cp", "homogeneous_d", "best_disjoint", "knapformer", "hybrid_cp")
"""Every baseline, in the order of the page."""


def cheap_placements(instance: Instance, below_s: float = math.inf) -> list[Candidate]:
    """The baselines that need no search. A plan takes the best feasible one if its own search finds nothing better.

    Settings that provably stay above ``below_s``, the makespan to beat, are skipped.
    """
    searched = (rule(instance, below_s) for rule in (pure_dp, homogeneous_d, knapformer, hybrid_cp))
    return [pure_cp(instance), *searched]


def baselines(problem: ZelligeProblem, limits: Limits) -> list[Baseline[ZelligeSolution]]:
    """All baselines, with a solution to check where the rule's placement is feasible."""
    instance = compile_instance(problem)
    found = {candidate.name: candidate for candidate in cheap_placements(instance)}
    found["best_disjoint"] = _best_disjoint(instance, limits)
    return [_baseline(instance, found[name]) for name in NAMES]


def _best_disjoint(instance: Instance, limits: Limits) -> Candidate:
    # Its search may load a solver, which the cheap rules do without.
    from planner.papers.zellige.disjoint import best_disjoint

    makespan_s, placement, note, proved = best_disjoint(instance, limits)
    if placement is not None and not proved:
        note = f"{note}; not proved best" if note else "not proved best"
    return Candidate("best_disjoint", placement, makespan_s, placement is not None, note)


def _baseline(instance: Instance, candidate: Candidate) -> Baseline[ZelligeSolution]:
    solution = None
    if candidate.placement is not None and candidate.feasible:
        solution = build_solution(instance, candidate.placement)
    return Baseline(candidate.name, candidate.makespan_s, candidate.note, solution, candidate.feasible)
