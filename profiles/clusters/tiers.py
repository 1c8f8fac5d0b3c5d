"""What a cluster is made of: tiers that nest, ports that GPUs share, classes of devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STATED = "stated"
NODE = "node"


@dataclass(frozen=True)
class Tier:
    """One level: groups of `gpus` consecutive ranks that can reach each other here; None means all ranks.

    `bandwidth_bytes_per_s` is of one port and direction. `gpus_per_port` consecutive GPUs are behind one port (a NIC, a
    PCIe switch) and share it. Traffic of this tier also passes the ports of the tiers named in `through`. `latency_s`
    is of one step that crosses the tier. `sources` says for each number who says so. A number nobody stated is None.
    """

    name: str
    gpus: int | None = None
    bandwidth_bytes_per_s: float | None = None
    latency_s: float | None = None
    port: str = "port"
    gpus_per_port: int = 1
    through: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    def group(self, index: int) -> int:
        """The number of the group that holds the class's rank `index`."""
        return 0 if self.gpus is None else index // self.gpus


@dataclass(frozen=True)
class DeviceClass:
    """Nodes of one kind: ranks `first_rank` to `first_rank + num_ranks - 1`; tiers from the innermost outwards.

    `profile` names the cost table of the device, or is None where there is none: nothing stands in for it.
    `place` is where the class stands in its document, with a dot behind it, for messages.
    """

    name: str
    nodes: int
    gpus_per_node: int
    num_ranks: int
    tiers: tuple[Tier, ...]
    first_rank: int = 0
    first_node: int = 0
    profile: str | None = None
    device: str | None = None
    memory_bytes: int | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    place: str = ""

    def tier(self, name: str) -> Tier:
        """The tier of that name, which must be there."""
        return next(tier for tier in self.tiers if tier.name == name)

    def meeting(self, one: int, other: int) -> Tier | None:
        """The innermost tier with both ranks of this class in one group; None if no tier joins them."""
        first, second = one - self.first_rank, other - self.first_rank
        return next((tier for tier in self.tiers if tier.group(first) == tier.group(second)), None)

    def port_number(self, tier: Tier, rank: int) -> int:
        """The number, within the class, of the port of a tier that a rank is behind."""
        return (rank - self.first_rank) // tier.gpus_per_port

    def port_name(self, tier: Tier, rank: int) -> str:
        """That port in words: `NIC 1 of node 0`, or `uplink 3 of h100` where a port serves several nodes."""
        index = rank - self.first_rank
        if tier.gpus_per_port > self.gpus_per_node:
            return f"{tier.port} {index // tier.gpus_per_port} of {self.name}"
        node, local = divmod(index, self.gpus_per_node)
        return f"{tier.port} {local // tier.gpus_per_port} of node {self.first_node + node}"
