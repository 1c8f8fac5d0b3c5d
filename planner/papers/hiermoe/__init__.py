"""HierMoE: how deep an expert-parallel exchange goes down the machine, and which expert sits where.

Source: "HierMoE", arXiv 2508.09591, equations 1 to 11; *page* in comments is docs/papers/hiermoe.md. Related: EPLB
(deepseek-ai/EPLB), SmartMoE (USENIX ATC 2023), Tutel's two-dimensional exchange.
"""

from __future__ import annotations

from planner.paper import Paper
from planner.papers.hiermoe import pictures, presentation
from planner.papers.hiermoe.attach import attach
from planner.papers.hiermoe.baselines import baselines
from planner.papers.hiermoe.cautions import warnings
from planner.papers.hiermoe.certificate import bounds
from planner.papers.hiermoe.check import VIOLATIONS, check
from planner.papers.hiermoe.cost import derive
from planner.papers.hiermoe.derived import HiermoeDerivedProblem
from planner.papers.hiermoe.engines import METHODS, solve
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.solution import HiermoeSolution

PAPER = Paper[HiermoeProblem, HiermoeSolution, HiermoeDerivedProblem](
    name="hiermoe",
    title="HierMoE: hierarchical token deduplication and expert placement",
    decision="levels of the token exchange, and which experts sit on which slots, layer by layer",
    citation="HierMoE, arXiv 2508.09591",
    unit=lambda _problem: "s",
    methods=tuple(METHODS),
    problem_model=HiermoeProblem,
    solution_model=HiermoeSolution,
    derived_model=HiermoeDerivedProblem,
    derive=derive,
    solve=solve,
    bounds=bounds,
    check=check,
    objective=lambda solution: solution.objective_s,
    shares=presentation.shares,
    memory=presentation.memory,
    warnings=warnings,
    baselines=baselines,
    view=pictures.view,
    summary=presentation.summary,
    decisions=presentation.decisions,
    metrics=presentation.metrics,
    violations=VIOLATIONS,
    attach=attach,
)

__all__ = ["PAPER"]
