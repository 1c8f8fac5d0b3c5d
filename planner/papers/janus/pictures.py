"""What there is to see of a plan of Janus, by its task."""

from __future__ import annotations

from planner.papers.janus.problem import JanusProblem, PlacementProblem, ScalingProblem, SeriesProblem
from planner.papers.janus.shown.placement import placement_view
from planner.papers.janus.shown.scaling import scaling_view
from planner.papers.janus.shown.series import series_view
from planner.papers.janus.solution import JanusSolution, PlacementSolution, ScalingSolution, SeriesSolution
from planner.view import View


def view(problem: JanusProblem, solution: JanusSolution) -> View:
    """The sections of a plan, from top to bottom."""
    if isinstance(problem, ScalingProblem) and isinstance(solution, ScalingSolution):
        return scaling_view(problem, solution)
    if isinstance(problem, SeriesProblem) and isinstance(solution, SeriesSolution):
        return series_view(problem, solution)
    if isinstance(problem, PlacementProblem) and isinstance(solution, PlacementSolution):
        return placement_view(problem, solution)
    raise TypeError(f"no solution of this task of Janus: {type(solution).__name__}")
