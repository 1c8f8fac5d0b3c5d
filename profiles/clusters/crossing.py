"""What it takes to get from one rank to another, or around a set of ranks: tiers, ports, and who shares them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from profiles.clusters.tiers import NODE, DeviceClass, Tier
from profiles.errors import ProfileError


@dataclass(frozen=True)
class Hop:
    """One port on the way: `ranks` communicate through it at once, and each has `bandwidth_bytes_per_s` of it."""

    device_class: str
    tier: str
    port: str
    ranks: tuple[int, ...]
    bandwidth_bytes_per_s: float | None


@dataclass(frozen=True)
class Crossing:
    """The way between ranks. `tier` is the bottleneck: the first without a bandwidth, else the slowest per rank.

    `bandwidth_bytes_per_s` is what one rank has in one direction while `sharing` ranks use the same port of that tier;
    `latency_s` is one step across `outermost`, the tier where the ranks meet. None: nobody stated it. The two
    places are where the classes of these numbers stand in their document, for messages.
    """

    tier: str
    outermost: str
    bandwidth_bytes_per_s: float | None
    latency_s: float | None
    sharing: int
    hops: tuple[Hop, ...]
    source: str
    cluster: str = ""
    bandwidth_place: str = ""
    latency_place: str = ""

    def require(self) -> tuple[float, float]:
        """Bandwidth in bytes per second and latency in seconds.

        Raises `ProfileError` (missing_field) that names the tier and the lines that state what is missing.
        """
        if self.bandwidth_bytes_per_s is None:
            raise _unstated(
                self.cluster, self.bandwidth_place, self.tier, "bandwidth_bytes_per_s", "of one port and direction"
            )
        if self.latency_s is None:
            raise _unstated(
                self.cluster, self.latency_place, self.outermost, "latency_s", "of one step of a collective"
            )
        return self.bandwidth_bytes_per_s, self.latency_s


def between(
    classes: Sequence[DeviceClass], one: int, other: int, active: Iterable[int] = (), *, cluster: str = ""
) -> Crossing:
    """The way from rank `one` to rank `other` while the `active` ranks communicate across the same tiers too.

    Links are full duplex: at each end only the ranks behind the same port share it. Raises `ProfileError`.
    """
    if one == other:
        raise ProfileError(f"expected two different ranks, got {one} twice", code="out_of_range", where="ranks")
    ends = [(class_of(classes, rank), rank) for rank in (one, other)]
    busy = sorted(set(active))
    for rank in busy:
        class_of(classes, rank)
    meeting = _meeting(ends[0], ends[1])
    hops = [
        _hop(device, device.tier(name), rank, {rank, *busy})
        for (device, rank), tier in zip(ends, meeting, strict=True)
        for name in (*tier.through, tier.name)
    ]
    return _crossing(hops, list(zip((device for device, _ in ends), meeting, strict=True)), cluster)


def around(
    classes: Sequence[DeviceClass], ranks: Iterable[int], *, cluster: str = "", outside_nodes: bool = False
) -> Crossing:
    """What a collective over `ranks` crosses while all of them communicate: neighbours in rank order, and the ends.

    With `outside_nodes` only the tiers above the node count (inside a node collectives are measured).
    Raises `ProfileError` for fewer than two ranks, or ranks that no tier joins.
    """
    group = sorted(set(ranks))
    if len(group) < 2:
        raise ProfileError(f"expected at least two ranks, got {len(group)}", code="out_of_range", where="ranks")
    ends = [(class_of(classes, rank), rank) for rank in group]
    met: dict[tuple[str, str], tuple[DeviceClass, Tier]] = {}
    for left, right in zip(ends, [*ends[1:], ends[0]], strict=True):
        for (device, _), tier in zip((left, right), _meeting(left, right), strict=True):
            if not outside_nodes or tier.gpus is None or tier.gpus > device.gpus_per_node:
                met[device.name, tier.name] = (device, tier)
    if not met:
        raise ProfileError("these ranks share a node", code="out_of_range", where="ranks")
    hops = []
    for device, tier in met.values():
        own = {rank for holder, rank in ends if holder is device}
        for name in (*tier.through, tier.name):
            behind = device.tier(name)
            counts: dict[int, int] = {}
            for rank in sorted(own):
                number = device.port_number(behind, rank)
                counts[number] = counts.get(number, 0) + 1
            fullest = max(counts, key=lambda number: (counts[number], -number))
            first = next(rank for rank in sorted(own) if device.port_number(behind, rank) == fullest)
            hops.append(_hop(device, behind, first, own))
    return _crossing(hops, list(met.values()), cluster)


def class_of(classes: Sequence[DeviceClass], rank: int) -> DeviceClass:
    """The device class that holds a rank. Raises `ProfileError` (out_of_range)."""
    for device in classes:
        if device.first_rank <= rank < device.first_rank + device.num_ranks:
            return device
    total = sum(device.num_ranks for device in classes)
    raise ProfileError(f"expected ranks from 0 to {total - 1}, got {rank}", code="out_of_range", where="ranks")


def _meeting(one: tuple[DeviceClass, int], other: tuple[DeviceClass, int]) -> tuple[Tier, Tier]:
    """The tier where two ranks meet, as each end's class has it."""
    (first, rank), (second, peer) = one, other
    if first is second:
        tier = first.meeting(rank, peer)
        if tier is not None:
            return tier, tier
        outside = f"nodes of {first.name}"
    else:
        outer = [device.tiers[-1] for device in (first, second)]
        if all(tier.gpus is None for tier in outer) and outer[0].name == outer[1].name:
            return outer[0], outer[1]
        outside = f"{first.name} and {second.name}"
    raise ProfileError(
        f"no tier joins ranks {rank} and {peer}: state a tier without gpus (it holds all ranks) that joins {outside}",
        code="missing_field",
        where="tiers",
    )


def _hop(device: DeviceClass, tier: Tier, rank: int, active: set[int]) -> Hop:
    number = device.port_number(tier, rank)
    start = device.first_rank + number * tier.gpus_per_port
    behind = range(start, min(start + tier.gpus_per_port, device.first_rank + device.num_ranks))
    sharing = tuple(peer for peer in behind if peer in active)
    whole = tier.bandwidth_bytes_per_s
    return Hop(
        device.name, tier.name, device.port_name(tier, rank), sharing, None if whole is None else whole / len(sharing)
    )


def _crossing(hops: Sequence[Hop], met: Sequence[tuple[DeviceClass, Tier]], cluster: str) -> Crossing:
    unstated = [hop for hop in hops if hop.bandwidth_bytes_per_s is None]
    slowest = unstated[0] if unstated else min(hops, key=lambda hop: hop.bandwidth_bytes_per_s or 0.0)
    outermost = max(met, key=lambda pair: (pair[1].gpus is None, pair[1].gpus or 0))[1].name
    outer = [(device, tier) for device, tier in met if tier.name == outermost]
    latencies = [tier.latency_s for _, tier in outer]
    stated = [value for value in latencies if value is not None]
    bottleneck = next(device for device, _ in met if device.name == slowest.device_class)
    sources = [bottleneck.tier(slowest.tier).sources.get("bandwidth_bytes_per_s", "")]
    sources += [tier.sources.get("latency_s", "") for _, tier in outer if tier.latency_s is not None]
    return Crossing(
        tier=slowest.tier,
        outermost=outermost,
        bandwidth_bytes_per_s=slowest.bandwidth_bytes_per_s,
        latency_s=max(stated) if len(stated) == len(latencies) else None,
        sharing=len(slowest.ranks),
        hops=tuple(hops),
        source="; ".join(dict.fromkeys(text for text in sources if text)),
        cluster=cluster,
        bandwidth_place=bottleneck.place,
        latency_place=next((device.place for device, tier in outer if tier.latency_s is None), ""),
    )


def _unstated(cluster: str, place: str, tier: str, field: str, what: str) -> ProfileError:
    whose = f" of cluster {cluster}" if cluster else ""
    example = "450e9" if tier == NODE else "50e9"
    value = example if field.startswith("bandwidth") else "1e-5"
    return ProfileError(
        f"nobody stated the {field} of tier {tier}{whose} ({what}): state it, for example "
        f"tiers: {{{tier}: {{{field}: {value}}}}}",
        code="missing_field",
        where=f"{place}tiers.{tier}.{field}",
    )
