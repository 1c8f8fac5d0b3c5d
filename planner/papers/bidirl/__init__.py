"""BiDiRL: how many GPUs of an RL job roll out and how many train, and when either pool is lent to the other role.

Source: "BiDiRL", arXiv 2607.09207; *page* in comments is docs/papers/bidirl.md.
"""

from __future__ import annotations

from planner.paper import Paper
from planner.papers.bidirl import pictures, presentation
from planner.papers.bidirl.baselines import baselines
from planner.papers.bidirl.cautions import warnings
from planner.papers.bidirl.certificate import bounds
from planner.papers.bidirl.check import VIOLATIONS, check
from planner.papers.bidirl.cost import derive
from planner.papers.bidirl.derived import BidirlDerivedProblem
from planner.papers.bidirl.engines import METHODS, solve
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.solution import BidirlSolution

PAPER = Paper[BidirlProblem, BidirlSolution, BidirlDerivedProblem](
    name="bidirl",
    title="BiDiRL: GPU split between rollout and training, with borrowing in both directions",
    decision="how many GPUs roll out and train, in which replica layouts, and from what backlog a pool is lent",
    citation="BiDiRL, arXiv 2607.09207",
    unit=lambda _problem: "s",
    methods=tuple(METHODS),
    problem_model=BidirlProblem,
    solution_model=BidirlSolution,
    derived_model=BidirlDerivedProblem,
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
    step="one batch generated and trained on, in steady state without borrowing",
    derives_by=("batch",),
)

__all__ = ["PAPER"]
