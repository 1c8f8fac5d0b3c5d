"""The expert maps of traced layers, in short."""

from __future__ import annotations

from collections.abc import Sequence

from planner.papers.janus.solution import ExpertMap, LayerMap
from planner.view import Table

SHOWN = 16


def map_tables(maps: Sequence[ExpertMap]) -> tuple[Table, ...]:
    """For each map of a layer, its copies and what its busiest instance holds; the first ``SHOWN`` of them."""
    layers = [(of, layer) for of in maps for layer in of.layers]
    if not layers:
        return ()
    rows = tuple(_row(of, layer) for of, layer in layers[:SHOWN])
    more = len(layers) - SHOWN
    title = "expert maps" if more <= 0 else f"expert maps, the first {SHOWN} of {len(layers)}"
    return (Table(title, ("instances", "layer", "copied experts", "most copies", "largest co-activation"), rows),)


def _row(of: ExpertMap, layer: LayerMap) -> tuple[str, ...]:
    return (
        f"{of.expert_instances}" + ("" if of.device is None else f" {of.device}"),
        str(layer.layer_id),
        str(sum(copies > 1 for copies in layer.replicas)),
        str(max(layer.replicas)),
        f"{layer.max_coactivation:,.6g}",
    )
