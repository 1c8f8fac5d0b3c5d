"""Compass: how each tensor-parallel collective and its GEMM overlap, in one strategy an operator.

Source: "Compass", arXiv 2609.10549; *page* in comments is docs/papers/compass.md, which says where it departs from the
print. The launcher's rules are those of NVIDIA/TransformerEngine and NVIDIA/Megatron-LM.
"""

from __future__ import annotations

from planner.paper import Paper
from planner.papers.compass import pictures, presentation
from planner.papers.compass.baselines import baselines
from planner.papers.compass.cautions import warnings
from planner.papers.compass.certificate import bounds
from planner.papers.compass.check import VIOLATIONS, check
from planner.papers.compass.cost import derive
from planner.papers.compass.derived import CompassDerivedProblem
from planner.papers.compass.engines import METHODS, solve
from planner.papers.compass.problem import CompassProblem
from planner.papers.compass.runs.attach import attach
from planner.papers.compass.solution import CompassSolution

PAPER = Paper[CompassProblem, CompassSolution, CompassDerivedProblem](
    name="compass",
    title="Compass: overlap of tensor-parallel collectives with their GEMMs",
    decision="for every GEMM with a collective: in sequence, in d chunks, or one fused kernel",
    citation="Compass, arXiv 2609.10549",
    unit=lambda _problem: "s",
    methods=tuple(METHODS),
    problem_model=CompassProblem,
    solution_model=CompassSolution,
    derived_model=CompassDerivedProblem,
    derive=derive,
    solve=solve,
    bounds=bounds,
    check=check,
    objective=lambda solution: solution.metrics.total_time_s,
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
    derives_by=("launcher_rules",),
)

__all__ = ["PAPER"]
