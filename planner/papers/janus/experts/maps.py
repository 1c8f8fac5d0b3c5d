"""Where the experts of the traced layers sit for a number of expert instances."""

from __future__ import annotations

from planner.papers.janus.experts.layers import placed_of
from planner.papers.janus.problem import Layer, SizingProblem
from planner.papers.janus.solution import ExpertMap, LayerMap


def expert_maps(problem: SizingProblem, expert_instances: int, device: str | None) -> ExpertMap:
    """The map of all ``layers``, by ascending id, on so many instances of a device (None: the problem's own).

    They must hold every expert. Deterministic, and kept beside the problem: asked for again it costs nothing. Without
    layers the map is empty. Raises BadInputError: too_large, or a file that was not read.
    """
    slots = slots_of(problem, device)
    layers = sorted(problem.layers, key=lambda layer: layer.layer_id)
    maps = tuple(_map(problem, layer, slots, expert_instances) for layer in layers)
    return ExpertMap(expert_instances=expert_instances, device=device, layers=maps)


def slots_of(problem: SizingProblem, device: str | None) -> int:
    """C of a device."""
    own = [entry.slots_per_instance for entry in problem.devices if entry.id == device]
    return (own[0] if own else None) or problem.slots_per_instance


def _map(problem: SizingProblem, layer: Layer, slots: int, instances: int) -> LayerMap:
    placed = placed_of(problem, layer, slots, instances)
    return LayerMap(
        layer_id=layer.layer_id,
        replicas=tuple(placed.copies.tolist()),
        placement=tuple(tuple(row) for row in placed.table.tolist()),
        max_coactivation=placed.largest,
    )
