"""alpha and beta of each collective, over the bytes of one rank's padded send buffer.

Ranks of one node that lie side by side, or any ranks of a node without tiers inside, are priced by the profile's
all-to-all of so many ranks: the line of least squared relative error through its rows from 64 KiB on, or through
interpolated prices at their sizes where so many ranks were not measured.

Other ranks send over the tiers where they meet, all ranks of the cluster at once. Of a buffer S for n ranks every peer
gets S/n. Peers in the same node are reached over its faster links meanwhile and left out. Each of the others costs a
step of its tier's latency, and the tier on which the bytes take longest sets the pace:

    alpha = sum over those peers of latency,   beta = max over tiers of (its peers / n) / bandwidth of a rank

With all n - 1 peers outside the node this is the ring of ``profiles.cluster``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from planner.attribution import Sources
from planner.derivation.account import sources_of
from planner.derivation.collective_line import collective_line
from planner.derivation.lines import Line
from planner.errors import BadInputError
from planner.papers.hiermoe.costs.levels import Collective
from planner.papers.hiermoe.derived import Derive
from planner.papers.hiermoe.problem import LinkCost
from profiles.cluster import Cluster, Link
from profiles.clusters.tiers import STATED as SAID_BY_USER
from profiles.clusters.tiers import Tier
from profiles.errors import ProfileError
from profiles.priced import MODELLED, SOURCES, STATED
from profiles.profile import Profile


@dataclass(frozen=True)
class PricedLink:
    """A collective's line, where it comes from, and whether rows of the profile priced it."""

    collective: Collective
    line: Line
    sources: Sources
    from_rows: bool

    def cost(self) -> LinkCost:
        """The document of the explicit form."""
        return LinkCost(
            latency_s=self.line.alpha, bandwidth_bytes_per_s=float(f"{1.0 / self.line.beta:.8e}"), sources=self.sources
        )


def priced_link(collective: Collective, given: Derive, profile: Profile, cluster: Cluster) -> PricedLink:
    """Price one collective. Raises BadInputError that names a level which neither profile nor cluster knows."""
    if _like_rows(collective, cluster):
        return _from_rows(collective, given, profile)
    return _over_tiers(collective, given, cluster)


def _like_rows(collective: Collective, cluster: Cluster) -> bool:
    """Whether rows of so many ranks of one node are rows of these ranks."""
    inside = {rank // cluster.gpus_per_node for rank in collective.ranks} == {0}
    islands = any(tier.gpus is not None and 1 < tier.gpus < cluster.gpus_per_node for tier in _tiers(cluster))
    return inside and (collective.consecutive or not islands)


def _from_rows(collective: Collective, given: Derive, profile: Profile) -> PricedLink:
    ranks = len(collective.ranks)
    try:
        fitted = collective_line(profile, "all_to_all", ranks, given.extrapolate)
    except ProfileError as error:
        message = f"{collective.name}, an all-to-all of {ranks} ranks in a node: {error.message}"
        raise BadInputError(message, code=error.code, where="derive.profile") from None
    return PricedLink(collective, fitted.line, fitted.sources, True)


def _over_tiers(collective: Collective, given: Derive, cluster: Cluster) -> PricedLink:
    n = len(collective.ranks)
    home, peers = collective.ranks[0], collective.ranks[1:]
    outside = [rank for rank in peers if rank // cluster.gpus_per_node != home // cluster.gpus_per_node]
    ways = Counter(_way(collective, home, rank, given, cluster) for rank in outside or peers)
    alpha = sum(count * way.latency_s for way, count in ways.items())
    beta = max(count / n / way.bandwidth_bytes_per_s for way, count in ways.items())
    stated = all(way.source == SAID_BY_USER for way in ways)
    shares = [float(index == (STATED if stated else MODELLED)) for index in range(len(SOURCES))]
    line = Line(float(f"{alpha:.8e}"), float(f"{beta:.8e}"), 0.0, 0.0)
    return PricedLink(collective, line, sources_of(shares), False)


def _way(collective: Collective, one: int, other: int, given: Derive, cluster: Cluster) -> Link:
    """What a rank has of the way to another while all ranks communicate. Raises BadInputError naming the tier."""
    crosses = one // cluster.gpus_per_node != other // cluster.gpus_per_node
    place = "derive.cluster"
    if crosses and (given.placed or getattr(given.cluster, "inter_node", None) is not None):
        if cluster.link is None:
            message = (
                f"{collective.name} leaves the node: state the link between nodes (bandwidth_bytes_per_s and "
                "latency_s, or an imported log)"
            )
            raise BadInputError(message, code="missing_field", where=f"{place}.inter_node")
        return cluster.link
    try:
        crossing = cluster.link_between(one, other, active=range(cluster.num_ranks))
        bandwidth, latency = crossing.require()
    except ProfileError as error:
        where = f"{place}.{error.where}" if error.where and not isinstance(given.cluster, str) else place
        raise BadInputError(f"{collective.name}: {error.message}", code=error.code, where=where) from None
    return Link(bandwidth, latency, SAID_BY_USER if crossing.source in ("", SAID_BY_USER) else crossing.source)


def _tiers(cluster: Cluster) -> tuple[Tier, ...]:
    return cluster.device_classes[0].tiers
