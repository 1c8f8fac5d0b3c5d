"""Layout: tensor, context, pipeline, expert and data parallelism, ZeRO stage, recomputation and micro-batch of a job.

Source: "Efficient Large-Scale Language Model Training on GPU Clusters", arXiv 2104.04473; *page* in comments is
docs/papers/layout.md, which says where it departs from the print. The launchers' rules are those of NVIDIA/Megatron-LM,
microsoft/DeepSpeed and pytorch/torchtitan.
"""

from __future__ import annotations

from planner.paper import Paper
from planner.papers.layout import attributed, pictures, presentation
from planner.papers.layout.baselines import baselines
from planner.papers.layout.cautions import warnings
from planner.papers.layout.certificate import bounds
from planner.papers.layout.check import VIOLATIONS, check
from planner.papers.layout.cost import derive
from planner.papers.layout.derived import LayoutDerivedProblem
from planner.papers.layout.engines import METHODS, solve
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.solution import LayoutSolution

PAPER = Paper[LayoutProblem, LayoutSolution, LayoutDerivedProblem](
    name="layout",
    title="Layout: how a training job is cut over its GPUs",
    decision="tp, cp, pp, vpp, ep, etp, ZeRO stage, recomputation, micro-batch and layers of each stage",
    citation="Megatron-LM pipelines, arXiv 2104.04473",
    unit=lambda _problem: "s",
    methods=tuple(METHODS),
    problem_model=LayoutProblem,
    solution_model=LayoutSolution,
    derived_model=LayoutDerivedProblem,
    derive=derive,
    solve=solve,
    bounds=bounds,
    check=check,
    objective=lambda solution: solution.step_time_s,
    shares=attributed.shares,
    memory=presentation.memory,
    warnings=warnings,
    baselines=baselines,
    view=pictures.view,
    summary=presentation.summary,
    decisions=presentation.decisions,
    metrics=presentation.metrics,
    violations=VIOLATIONS,
    step="one training step: forward, backward, reduction and update; loading of data and checkpoints are left out",
    derives_by=("launcher_rules", "batch", "search", "cluster.num_gpus", "cluster.gpus_per_node"),
)

__all__ = ["PAPER"]
