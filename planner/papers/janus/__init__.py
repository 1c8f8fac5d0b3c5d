"""Janus: how many GPUs for attention and how many for experts carry a token rate within a time per output token.

Source: "Janus", arXiv 2512.13525; *page* in comments is docs/papers/janus.md, which says where it departs from the
print. Related: MegaScale-Infer (arXiv 2504.02263), whose balance of the two pools is a baseline.
"""

from __future__ import annotations

from planner.paper import Paper
from planner.papers.janus import pictures, presentation, summaries
from planner.papers.janus.attach import attach
from planner.papers.janus.baselines import baselines
from planner.papers.janus.cautions import warnings
from planner.papers.janus.certificate import bounds
from planner.papers.janus.check import VIOLATIONS, check
from planner.papers.janus.cost import derive
from planner.papers.janus.derived import JanusDerivedProblem
from planner.papers.janus.engines import METHODS, solve
from planner.papers.janus.problem import JanusProblem
from planner.papers.janus.solution import JanusSolution

PAPER = Paper[JanusProblem, JanusSolution, JanusDerivedProblem](
    name="janus",
    title="Janus: sizes of the attention and expert pools of a MoE decoder",
    decision="GPUs of the attention pool and of the expert pool, by the hour if the load varies; copies and placement "
    "of experts",
    citation="Janus, arXiv 2512.13525",
    unit=presentation.unit,
    methods=METHODS,
    problem_model=JanusProblem,
    solution_model=JanusSolution,
    derived_model=JanusDerivedProblem,
    derive=derive,
    solve=solve,
    bounds=bounds,
    check=check,
    objective=lambda solution: solution.objective,
    shares=presentation.shares,
    memory=presentation.memory,
    warnings=warnings,
    baselines=baselines,
    view=pictures.view,
    summary=summaries.summary,
    decisions=presentation.decisions,
    metrics=presentation.metrics,
    violations=VIOLATIONS,
    attach=attach,
)

__all__ = ["PAPER"]
