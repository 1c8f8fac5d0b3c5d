"""What a derived problem names, looked up: the layers' pairs in the layout that it asks for."""

from __future__ import annotations

from pathlib import Path

from planner.derivation.models import PLACE, language_model
from planner.derivation.references import input_errors
from planner.errors import BadInputError
from planner.papers.compass.costs.pairs import dropped_pairs, expert_pairs, pairs_of
from planner.papers.compass.costs.setting import Setting
from planner.papers.compass.costs.tensor_parallel import cuts
from planner.papers.compass.derived import Derive
from planner.papers.compass.problem import Rules
from profiles.cluster import Cluster
from profiles.geometry import ModelGeometry
from profiles.geometry.feed_forward import Experts
from profiles.profile import Profile


def setting_of(given: Derive, rules: Rules, profile: Profile, cluster: Cluster, folder: Path) -> Setting:
    """The pairs of a model's layers on these ranks.

    Raises BadInputError: an unknown model, ranks that do not divide it or leave their node, experts that are not there.
    """
    _refuse_scattered(given, cluster)
    geometry = language_model(given.model, folder)
    with input_errors("derive.tp_size"):
        found = cuts(geometry, given.tp_size)
    pairs, dropped, experts = pairs_of(given, found, rules), dropped_pairs(given, found, rules), None
    if given.expert_parallel_size is not None:
        kind, layers = _experts(given, geometry)
        experts = kind
        dispatched = expert_pairs(given, geometry.hidden, kind, layers)
        if rules == "none":
            pairs += dispatched
        else:
            dropped += dispatched
    if not pairs:
        message = f"{geometry.name} has no GEMM with a collective in this layout"
        raise BadInputError(message, code="out_of_range", where=PLACE)
    return Setting(given, rules, geometry, experts, found, pairs, dropped, profile, cluster)


def _refuse_scattered(given: Derive, cluster: Cluster) -> None:
    """Groups lie inside nodes, side by side."""
    node = min(cluster.gpus_per_node, cluster.num_ranks)
    if node % given.tp_size:
        raise BadInputError(
            f"expected tp_size to divide the {node} GPUs of a node, so that no group leaves it, got {given.tp_size}",
            code="out_of_range",
            where="derive.tp_size",
        )
    experts = given.expert_parallel_size
    if experts is not None and cluster.num_ranks % experts:
        raise BadInputError(
            f"expected expert_parallel_size to divide the {cluster.num_ranks} ranks, got {experts}",
            code="out_of_range",
            where="derive.expert_parallel_size",
        )


def _experts(given: Derive, geometry: ModelGeometry) -> tuple[Experts, int]:
    """The experts of all layers that have any, and how many such layers."""
    found: dict[Experts, int] = {}
    for kind, count in geometry.kinds():
        if isinstance(kind.feed_forward, Experts):
            found[kind.feed_forward] = found.get(kind.feed_forward, 0) + count
    if len(found) != 1:
        what = "has layers with different experts" if found else "has no experts"
        raise BadInputError(f"{geometry.name} {what}", code="out_of_range", where="derive.expert_parallel_size")
    [(experts, layers)] = found.items()
    if not experts.gated:
        message = f"the experts of {geometry.name} are not gated: rows of experts are of three products each"
        raise BadInputError(message, code="out_of_range", where=PLACE)
    if experts.count % (given.expert_parallel_size or 1):
        raise BadInputError(
            f"expected expert_parallel_size to divide {experts.count} experts, got {given.expert_parallel_size}",
            code="out_of_range",
            where="derive.expert_parallel_size",
        )
    return experts, layers
