"""Where the experts of the traced layers sit for the chosen pools, looked at again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from planner.findings import Findings
from planner.papers.janus.checks.offers import Offer, agree
from planner.papers.janus.checks.replicas import Floats, Seats, check_placement, largest_coactivation
from planner.papers.janus.experts.tokens import traced
from planner.papers.janus.problem import Layer, SizingProblem
from planner.papers.janus.solution import ExpertMap, LayerMap

Pools = tuple[int, str | None]
"""Expert instances and their device."""


def check_maps(
    problem: SizingProblem,
    maps: Sequence[ExpertMap],
    chosen: Sequence[Pools],
    known: Mapping[str | None, Offer],
    wanted: bool,
    found: Findings,
) -> None:
    """Note what is wrong with the maps of the chosen pools; unless they are ``wanted`` there may be none."""
    if not maps and not (wanted and problem.layers):
        return
    expected = set(chosen) if problem.layers else set()
    stated = [(one.expert_instances, one.device) for one in maps]
    if len(stated) != len(expected) or set(stated) != expected:
        message = f"expected one for each of the {len(expected)} pools of experts that are used, got {len(stated)}"
        if len(stated) == len(expected):
            message += ", some of others"
        found.add("expert_map_set", message, "expert_maps")
        return
    ids = sorted(layer.layer_id for layer in problem.layers)
    fitting: list[tuple[int, ExpertMap, Seats]] = []
    for index, one in enumerate(maps):
        if [layer.layer_id for layer in one.layers] != ids:
            message = f"expected the problem's {len(ids)} layers by ascending id, got {len(one.layers)}"
            found.add("expert_map_set", message, f"expert_maps.{index}.layers")
        elif one.device in known and one.expert_instances * known[one.device].slots >= problem.num_experts:
            fitting.append((index, one, Seats(problem.num_experts, one.expert_instances, known[one.device].slots)))
    places = {layer.layer_id: place for place, layer in enumerate(problem.layers)}
    for number, layer_id in enumerate(ids if fitting else []):
        loads, together = _statistics(problem, problem.layers[places[layer_id]], places[layer_id])
        for index, one, seats in fitting:
            where = f"expert_maps.{index}.layers.{number}"
            _check_layer(one.layers[number], loads, together, seats, where, found)


def _check_layer(stated: LayerMap, loads: Floats, together: Floats, seats: Seats, where: str, found: Findings) -> None:
    if not check_placement(stated.replicas, stated.placement, loads, seats, where, found):
        return
    worst = largest_coactivation(stated.placement, together)
    if not agree(stated.max_coactivation, worst):
        message = f"stated {stated.max_coactivation!r}, recomputed {worst!r}"
        found.add("objective_mismatch", message, f"{where}.max_coactivation")


def _statistics(problem: SizingProblem, layer: Layer, place: int) -> tuple[Floats, Floats]:
    """Tokens of each expert [E], and of each two together [E, E], symmetric."""
    E = problem.num_experts
    # Only the tokens are read as the planner reads them: those of a layer that states loads alone are drawn.
    where = f"layers.{place}.routing"
    ids = traced(layer.routing, problem.kept, E, problem.top_k, layer.layer_id, where).ids.astype(np.int64)
    together = np.zeros(E * E)
    for one, other in combinations(range(ids.shape[1]), 2):
        together += np.bincount(ids[:, one] * E + ids[:, other], minlength=E * E)
    pairs = together.reshape(E, E)
    return np.bincount(ids.ravel(), minlength=E).astype(np.float64), pairs + pairs.T
