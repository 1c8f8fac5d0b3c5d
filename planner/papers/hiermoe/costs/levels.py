"""The groups of each level of a cluster, and who takes part in the collective of each hop."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from planner.errors import BadInputError
from profiles.cluster import Cluster


@dataclass(frozen=True)
class Collective:
    """One collective of the page: ``kind`` flat, inter or intra, its level, and the ranks that rank 0 joins in it."""

    kind: str
    level: int
    ranks: tuple[int, ...]

    @property
    def name(self) -> str:
        """As the page writes it, for messages."""
        return "flat" if self.kind == "flat" else f"{self.kind}-{self.level}"

    @property
    def consecutive(self) -> bool:
        """Whether the ranks lie side by side."""
        return self.ranks == tuple(range(len(self.ranks)))


def level_groups(cluster: Cluster) -> tuple[int, ...]:
    """U of a cluster: the whole, then the groups of each tier that cuts it, from racks to islands in a node.

    Raises BadInputError where the ranks do not fill the groups of a tier.
    """
    groups = [1]
    tiers = [tier for tier in cluster.device_classes[0].tiers if tier.gpus is not None]
    for tier in sorted(tiers, key=lambda tier: -(tier.gpus or 0)):
        held = tier.gpus or 1
        if held >= cluster.num_ranks or held == 1:
            continue
        if cluster.num_ranks % held:
            raise BadInputError(
                f"{cluster.num_ranks} ranks do not fill groups of {held}, the tier {tier.name}: state level_groups",
                code="levels_not_nested",
                where="derive.level_groups",
            )
        groups.append(cluster.num_ranks // held)
    return tuple(groups)


def collectives(U: tuple[int, ...], G: int) -> list[Collective]:
    """The flat one, then Inter-i and Intra-i for i = 1..D-1."""
    found = [Collective("flat", 0, tuple(range(G)))]
    for level, (outer, inner) in enumerate(pairwise(U), start=1):
        found.append(Collective("inter", level, tuple(range(0, G // outer, G // inner))))
        found.append(Collective("intra", level, tuple(range(G // inner))))
    return found
