"""Memory: where the states of a training step are kept on one device, and what moving them costs.

Sources: "ZeRO", arXiv 1910.02054; "Reducing Activation Recomputation in Large Transformer Models", arXiv 2205.05198;
*page* in comments is docs/papers/memory.md.
"""

from __future__ import annotations

from planner.paper import Paper
from planner.papers.memory import pictures, presentation
from planner.papers.memory.as_stated import as_stated
from planner.papers.memory.baselines import baselines
from planner.papers.memory.cautions import warnings
from planner.papers.memory.certificate import bounds
from planner.papers.memory.check import VIOLATIONS, check
from planner.papers.memory.cost import derive
from planner.papers.memory.derived import MemoryDerivedProblem
from planner.papers.memory.engines import METHODS, solve
from planner.papers.memory.problem import MemoryProblem
from planner.papers.memory.solution import MemorySolution

PAPER = Paper[MemoryProblem, MemorySolution, MemoryDerivedProblem](
    name="memory",
    title="Memory: placement of training states, ZeRO to HSDP, recomputation and offload",
    decision="where parameters, gradients, optimizer and activations are kept, and over which dimensions sharded",
    citation="ZeRO, arXiv 1910.02054",
    unit=lambda _problem: "s",
    methods=tuple(METHODS),
    problem_model=MemoryProblem,
    solution_model=MemorySolution,
    derived_model=MemoryDerivedProblem,
    derive=derive,
    as_stated=as_stated,
    solve=solve,
    bounds=bounds,
    check=check,
    objective=lambda solution: solution.overhead_s,
    shares=presentation.shares,
    memory=presentation.memory,
    warnings=warnings,
    baselines=baselines,
    view=pictures.view,
    summary=presentation.summary,
    decisions=presentation.decisions,
    metrics=presentation.metrics,
    violations=VIOLATIONS,
)

__all__ = ["PAPER"]
