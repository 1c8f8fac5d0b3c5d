"""Seconds of a weight sync between the pools: measured, or every weight once over a measured bandwidth."""

from __future__ import annotations

from planner.attribution import Sources
from planner.papers.bidirl.derived import Derive
from profiles.geometry.model import ModelGeometry


def weight_sync_s(given: Derive, model: ModelGeometry) -> tuple[float, Sources]:
    """Seconds and where they come from. A broadcast sends the weights once, however many replicas listen."""
    sync = given.weight_sync
    if sync.bandwidth_bytes_per_s is None:
        return sync.measured_s or 0.0, Sources(stated=1.0)
    seconds = model.parameters * given.rollout.weight_bytes / sync.bandwidth_bytes_per_s
    return float(f"{seconds:.8e}"), Sources(modelled=1.0)
