"""FinDEP: the best schedule of an MoE layer served by attention GPUs and expert GPUs.

Source: "FinDEP", arXiv 2512.21487. The equations and headings that comments here cite as the page's are those of
docs/papers/findep.md, which says where it departs from the print.
Related: MegaScale-Infer (arXiv 2504.02263), whose ping-pong pipeline is a baseline.
"""

from __future__ import annotations

from planner.paper import Paper
from planner.papers.findep import presentation
from planner.papers.findep.baselines import baselines
from planner.papers.findep.certificate import bounds
from planner.papers.findep.check import VIOLATIONS, check
from planner.papers.findep.cost import derive
from planner.papers.findep.derived import FindepDerivedProblem
from planner.papers.findep.engines import METHODS, solve
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.solution import FindepSolution

UNITS = {"tokens_per_s": "tokens/s", "tokens_per_s_per_gpu": "tokens/s per GPU"}
"""Units by objective."""

PAPER = Paper[FindepProblem, FindepSolution, FindepDerivedProblem](
    name="findep",
    title="FinDEP: schedule of disaggregated MoE inference",
    decision="micro-batch size, micro-batches, chunks and order of an MoE layer on attention and expert GPUs",
    citation="FinDEP, arXiv 2512.21487",
    unit=lambda problem: UNITS[problem.objective],
    methods=tuple(METHODS),
    problem_model=FindepProblem,
    solution_model=FindepSolution,
    derived_model=FindepDerivedProblem,
    derive=derive,
    solve=solve,
    bounds=bounds,
    check=check,
    objective=lambda solution: solution.objective,
    shares=presentation.shares,
    memory=presentation.memory,
    warnings=presentation.warnings,
    baselines=baselines,
    view=presentation.view,
    summary=presentation.summary,
    decisions=presentation.decisions,
    metrics=presentation.metrics,
    violations=VIOLATIONS,
    sense="max",
)

__all__ = ["PAPER"]
