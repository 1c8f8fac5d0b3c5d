"""Zellige: joint placement of mixed image-video sequences on the ranks of one training step.

Source: "Zellige", arXiv 2608.01150v1; equations (1)-(3) are the model, (6)-(7) its ideal theory, (10) the headroom
rule. Related: FlexSP (arXiv 2412.01523), KnapFormer (arXiv 2508.06001), hybrid context parallelism (Megatron-LM).
"""

from __future__ import annotations

from planner.paper import Paper
from planner.papers.zellige import presentation
from planner.papers.zellige.baselines import baselines
from planner.papers.zellige.certificate import bounds
from planner.papers.zellige.check import VIOLATIONS, check
from planner.papers.zellige.cost import derive
from planner.papers.zellige.derived import ZelligeDerivedProblem
from planner.papers.zellige.engines import METHODS, solve
from planner.papers.zellige.problem import ZelligeProblem
from planner.papers.zellige.program import program
from planner.papers.zellige.solution import ZelligeSolution

PAPER = Paper[ZelligeProblem, ZelligeSolution, ZelligeDerivedProblem](
    name="zellige",
    title="Zellige: joint placement of mixed-length sequences on ranks",
    decision="how far to split every sequence of a step, along which axes, and on which ranks",
    citation="Zellige, arXiv 2608.01150v1",
    unit=lambda _problem: "s",
    methods=tuple(METHODS),
    problem_model=ZelligeProblem,
    solution_model=ZelligeSolution,
    derived_model=ZelligeDerivedProblem,
    derive=derive,
    solve=solve,
    bounds=bounds,
    check=check,
    objective=lambda solution: solution.metrics.makespan_s,
    shares=presentation.shares,
    memory=presentation.memory,
    warnings=presentation.warnings,
    baselines=baselines,
    view=presentation.view,
    summary=presentation.summary,
    decisions=presentation.decisions,
    metrics=presentation.metrics,
    violations=VIOLATIONS,
    run=program,
    step=presentation.STEP,
)

__all__ = ["PAPER"]
