"""The methods of the paper (page, "How it is solved and proved")."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

from planner.papers.findep.infeasibility import diagnose
from planner.papers.findep.paper_search import by_paper
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.scan import free_order_bound, replay_all, scan
from planner.papers.findep.schedule import build_solution
from planner.papers.findep.solution import FindepSolution
from planner.papers.findep.space import Decision
from solvers.report import Limits, Report, Status


def solve(problem: FindepProblem, method: str | None, limits: Limits) -> tuple[FindepSolution, Report]:
    """The best schedule by a method, by default ``scan``.

    Raises InfeasibleError (launcher_rules, attention_memory, expert_memory, makespan_limit) and LimitError (paper).
    """
    del limits
    name = method or "scan"
    decision, status, bound = METHODS[name](problem)
    solution = build_solution(problem, decision, bound)
    optimal = status is Status.OPTIMAL
    report = Report(
        status,
        "event-replay",
        name,
        version("numpy"),
        solution.objective,
        solution.objective if optimal else None,
        "exhaustive" if optimal else None,
    )
    return solution, report


def by_scan(problem: FindepProblem) -> tuple[Decision, Status, float]:
    """The box by closed forms, bound and replay: the best of both orders."""
    scanned = scan(problem)
    if scanned.best is None:
        raise diagnose(problem)
    return scanned.best, Status.OPTIMAL, scanned.free_order_bound


def by_replay(problem: FindepProblem) -> tuple[Decision, Status, float]:
    """Every candidate of the box replayed in both orders."""
    best, _ = replay_all(problem)
    if best is None:
        raise diagnose(problem)
    return best, Status.OPTIMAL, free_order_bound(problem)


METHODS: dict[str, Callable[[FindepProblem], tuple[Decision, Status, float]]] = {
    "scan": by_scan,
    "replay": by_replay,
    "paper": by_paper,
}
