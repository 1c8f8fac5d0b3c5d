"""alpha and beta of data-parallel collectives and pipeline hops, in a node and between nodes."""

from __future__ import annotations

from typing import TypeVar

from planner.derivation.clusters import refuse_unstated
from planner.derivation.hardware import AnyCluster
from planner.derivation.references import input_errors
from planner.derivation.ring_link import OPERATIONS, node_ring, nodes_ring
from planner.errors import BadInputError
from planner.papers.layout.costs.setting import Setting
from planner.papers.layout.table import Hops, Link, NodesLink, Tiers

AnyTiers = TypeVar("AnyTiers", bound=Hops)

NOTHING = Link(alpha_s=0.0, beta_s_per_byte=0.0)


def tiers_of(setting: Setting, written: AnyCluster) -> Tiers:
    """Of a ring: alpha a step, beta a byte, between nodes of a GPU's port where that is known; before a calibration.

    ``written`` is the cluster as stated.
    Raises BadInputError: no rows of collectives, or several nodes and no link between them.
    """
    intra = _inside(setting)
    return Tiers(intra=intra, inter=_between(setting, intra, written))


def _inside(setting: Setting) -> Link:
    """Of the whole node, or of as many of its ranks as were measured."""
    tables = [table.cost_table() for table in setting.profile.document.tables if table.family in OPERATIONS]
    measured = min((table.measured_range("ranks")[1] for table in tables), default=setting.device.node)
    ranks = min(setting.device.node, measured)
    if ranks == 1:
        return NOTHING
    with input_errors("derive.profile"):
        ring = node_ring(setting.profile, ranks, setting.given.extrapolate)
    return Link(alpha_s=ring.alpha_s, beta_s_per_byte=ring.beta_s_per_byte, sources=ring.sources)


def _between(setting: Setting, intra: Link, written: AnyCluster) -> NodesLink:
    cluster = setting.cluster
    if cluster.num_ranks <= cluster.gpus_per_node:
        return NodesLink(**dict(intra))
    refuse_unstated(cluster, written)
    if cluster.link is None:
        raise BadInputError(
            'missing field "inter_node": data-parallel collectives cross nodes; state its bandwidth and latency, or '
            "a log",
            code="missing_field",
            where="derive.cluster.inter_node",
        )
    return NodesLink(**vars(nodes_ring(cluster.link)))


def slowed(tiers: AnyTiers, times: float) -> AnyTiers:
    """Links so many times slower."""
    return tiers.model_copy(update={name: _slowed(getattr(tiers, name), times) for name in ("intra", "inter")})


def _slowed(link: Link, times: float) -> Link:
    return link.model_copy(
        update={
            "alpha_s": float(f"{times * link.alpha_s:.8e}"),
            "beta_s_per_byte": float(f"{times * link.beta_s_per_byte:.8e}"),
        }
    )
