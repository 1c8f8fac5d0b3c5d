"""Which replica layouts of a role may be used (page, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from planner.papers.bidirl.problem import BidirlProblem, RolloutLayout, TrainLayout

ROUNDED = 1 + 1e-12
"""What rounding may put above a capacity."""

L = TypeVar("L", bound=RolloutLayout | TrainLayout)


def fits(problem: BidirlProblem, layout: RolloutLayout | TrainLayout) -> bool:
    """Whether a layout leaves the reserve of every GPU free."""
    return layout.memory_bytes <= problem.cluster.usable_bytes * ROUNDED


def usable(problem: BidirlProblem, layouts: Sequence[L]) -> tuple[L, ...]:
    """Of the layouts of a role, those that a split may use: all that fit, or the smallest of them alone; by id."""
    fitting = sorted((layout for layout in layouts if fits(problem, layout)), key=lambda layout: layout.id)
    return tuple(smallest(fitting)) if problem.layout_policy == "minimal" else tuple(fitting)


def smallest(layouts: Sequence[L]) -> list[L]:
    """The layout of fewest GPUs, ties by memory then id; none of none."""
    return sorted(layouts, key=lambda layout: (layout.gpus, layout.memory_bytes, layout.id))[:1]
