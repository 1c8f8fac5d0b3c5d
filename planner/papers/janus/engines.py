"""The methods of the paper, by task (page, "Algorithm")."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from planner.errors import BadInputError
from planner.papers.janus.enumeration import enumerated
from planner.papers.janus.model import Option
from planner.papers.janus.placing import PLACEMENT_METHODS, solve_placement
from planner.papers.janus.problem import JanusProblem, PlacementProblem, ScalingProblem, SeriesProblem
from planner.papers.janus.search import Choice, cheapest
from planner.papers.janus.sizing import Search, solve_scaling, solve_series
from planner.papers.janus.solution import JanusSolution, ScalingSolution, SeriesSolution
from solvers.report import Limits, Report, Status


def enumerate_all(options: Sequence[Option], demands: Sequence[float], count: int = 1) -> list[list[Choice]]:
    """Every pair looked at for itself, demand by demand. Raises LimitError."""
    return [enumerated(options, demand, count) for demand in demands]


SIZING_METHODS: dict[str, Search] = {"search": cheapest, "enumerate": enumerate_all}
"""The fewest attention instances of each number of experts by bisection (the default); all pairs."""
METHODS = tuple(dict.fromkeys((*SIZING_METHODS, *PLACEMENT_METHODS)))
"""Of all tasks; each knows some."""


def solve(problem: JanusProblem, method: str | None, limits: Limits) -> tuple[JanusSolution, Report]:
    """The answer to a task by one of its methods, by default ``search``.

    Raises InfeasibleError (expert_memory, expert_slots, launcher_rules, tpot_slo, attention_memory, gpu_limit,
    batch_limit, joint), LimitError, and BadInputError for a method of another task, or what is too large.
    """
    name = method or "search"
    if isinstance(problem, PlacementProblem):
        _refuse_unknown(name, PLACEMENT_METHODS, "placement")
        return solve_placement(problem, name, limits)
    _refuse_unknown(name, SIZING_METHODS, "scaling and series")
    solution: ScalingSolution | SeriesSolution
    heard = {} if limits.progress is None else {"tell": limits.progress}
    if isinstance(problem, ScalingProblem):
        solution = solve_scaling(problem, SIZING_METHODS[name], **heard)
    elif isinstance(problem, SeriesProblem):
        solution = solve_series(problem, SIZING_METHODS[name], **heard)
    else:
        raise TypeError(f"no task of Janus: {type(problem).__name__}")
    reached = solution.objective
    return solution, Report(
        Status.OPTIMAL, "pool-sizing", name, version("numpy"), reached, bound=reached, bound_kind="exhaustive"
    )


def _refuse_unknown(name: str, known: Sequence[str] | dict[str, Search], tasks: str) -> None:
    if name not in known:
        message = f'{tasks} know no method "{name}"; known: {", ".join(known)}'
        raise BadInputError(message, code="out_of_range", where="--method")
