"""The data-parallel dimensions of a rank: the ranks of its node, over which states are sharded first, and the nodes.

Ranks stand as the launchers place them: t fastest, then c, d, p; of experts u, e, then their data ranks, p. So those
that share a parameter are every t-th (of experts every e·u-th) of a block of N/p.
"""

from __future__ import annotations

import math

from planner.attribution import Sources
from planner.derivation.clusters import refuse_unstated
from planner.derivation.references import input_errors
from planner.derivation.ring_link import RingLink, node_ring, nodes_ring
from planner.errors import BadInputError
from planner.papers.memory.byte_fields import Dim
from planner.papers.memory.costs.setting import Setting
from profiles.cluster import Cluster

Dims = tuple[Dim, ...]

IN_NODE, ACROSS_NODES = "in_node", "across_nodes"
_NOTHING = RingLink(0.0, 0.0, Sources(stated=1.0))


def dims_of(setting: Setting, has_experts: bool) -> tuple[Dims, Dims]:
    """The dimensions of what is no expert, and of experts (none where there are none); equally many.

    Raises BadInputError: stated ones that do not fit the layout, or a link that nobody knows.
    """
    given, layout = setting.given, setting.job.layout
    if given.dense_dims is not None:
        return _stated(setting, given.dense_dims, has_experts)
    cluster = setting.cluster
    if cluster is None:
        raise TypeError("the derived form has dims or a cluster")
    strides = [layout.tp, *([layout.ep * layout.etp] if has_experts else [])]
    sizes = [_sizes(cluster, layout.pp, stride) for stride in strides]
    # Only dimensions that some group has ranks in; one at least.
    inside, between = (any(size[place] > 1 for size in sizes) for place in (0, 1))
    dims = [_dims(setting, size, inside or not between, between) for size in sizes]
    return dims[0], (dims[1] if has_experts else ())


def _stated(setting: Setting, dense: Dims, has_experts: bool) -> tuple[Dims, Dims]:
    given, layout = setting.given, setting.job.layout
    experts = given.expert_dims or ()
    if bool(experts) != has_experts:
        message = (
            'missing field "expert_dims": the model has experts, and dense_dims are stated'
            if has_experts
            else f"{setting.model.name} has no experts: leave expert_dims out"
        )
        raise BadInputError(message, code="missing_field" if has_experts else "no_experts", where="derive.expert_dims")
    ranks = layout.tp * math.prod(dim.size for dim in dense)
    if math.prod(dim.size for dim in dense) % layout.cp:
        message = f"expected sizes whose product is a multiple of cp = {layout.cp}: they hold dp * cp ranks"
        raise BadInputError(message, code="world_size", where="derive.dense_dims")
    if has_experts:
        width = layout.ep * layout.etp * math.prod(dim.size for dim in experts)
        if width != ranks:
            message = f"expected ep * etp * sizes = tp * dense sizes = {ranks} ranks of a stage, got {width}"
            raise BadInputError(message, code="expert_world_size", where="derive.expert_dims")
        if len(experts) != len(dense):
            message = f"expected as many as dense_dims, {len(dense)}, got {len(experts)} (a size may be 1)"
            raise BadInputError(message, code="out_of_range", where="derive.expert_dims")
    return dense, experts


def _sizes(cluster: Cluster, stages: int, stride: int) -> tuple[int, int]:
    """Ranks that share a parameter: those inside a node, and times how many nodes."""
    sharing = cluster.num_ranks // stages // stride
    node = min(cluster.gpus_per_node, cluster.num_ranks)
    inside = math.gcd(sharing, node // stride) if node % stride == 0 else 1
    return inside, sharing // inside


def _dims(setting: Setting, sizes: tuple[int, int], inside: bool, between: bool) -> Dims:
    found = []
    if inside:
        found.append(_dim(IN_NODE, sizes[0], _inside(setting, sizes[0]) if sizes[0] > 1 else _NOTHING))
    if between:
        found.append(_dim(ACROSS_NODES, sizes[1], _between(setting) if sizes[1] > 1 else _NOTHING))
    return tuple(found)


def _dim(name: str, size: int, link: RingLink) -> Dim:
    return Dim(id=name, size=size, **vars(link))


def _inside(setting: Setting, ranks: int) -> RingLink:
    profile, hardware = setting.profile, setting.hardware
    if profile is None or hardware is None:
        message = 'missing field "profile": it prices the links of a node; or state dense_dims'
        raise BadInputError(message, code="missing_field", where="derive.profile")
    with input_errors("derive.profile"):
        return node_ring(profile, ranks, hardware.extrapolate)


def _between(setting: Setting) -> RingLink:
    cluster, hardware = setting.cluster, setting.hardware
    if cluster is None or hardware is None:
        raise TypeError("dims between nodes are of a cluster")
    if cluster.link is None:
        refuse_unstated(cluster, hardware.cluster)
        message = (
            'missing field "inter_node": data-parallel ranks are in several nodes; state what crossing them costs, '
            "or dense_dims"
        )
        raise BadInputError(message, code="missing_field", where="derive.cluster.inter_node")
    return nodes_ring(cluster.link)
