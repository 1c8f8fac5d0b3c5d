"""The problem file of Janus in explicit costs (page, "Problem file"), validated once at the door.

Three tasks, each a form of its own: the pools for one demand, for a series of demands, or the placement of one layer.
"""

from __future__ import annotations

from planner.papers.janus.tasks.placement import PlacementProblem
from planner.papers.janus.tasks.series import MAX_INTERVALS, Arrivals, Interval, SeriesProblem, refuse_one_demand
from planner.papers.janus.tasks.shared import MAX_EXPERTS, JanusProblem
from planner.papers.janus.tasks.sizing import (
    Baselines,
    Device,
    FixedRatio,
    Layer,
    Monolithic,
    Rules,
    ScalingProblem,
    SizingProblem,
)

__all__ = [
    "MAX_EXPERTS",
    "MAX_INTERVALS",
    "Arrivals",
    "Baselines",
    "Device",
    "FixedRatio",
    "Interval",
    "JanusProblem",
    "Layer",
    "Monolithic",
    "PlacementProblem",
    "Rules",
    "ScalingProblem",
    "SeriesProblem",
    "SizingProblem",
    "refuse_one_demand",
]
