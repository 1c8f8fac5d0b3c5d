"""A cluster: its ranks in nodes and tiers, and what communication across them costs.

Inside a node collectives are measured (see `Profile.collective`); between nodes they follow the alpha-beta model of a
ring over ranks, with a latency per step and a bandwidth per GPU that the user stated, a preset cites or a log was
fitted to. `profiles.clusters.library` reads clusters of several tiers and device classes from files and presets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from profiles.clusters.crossing import Crossing, around, between, class_of
from profiles.clusters.tiers import NODE, STATED, DeviceClass, Tier
from profiles.document import ProfileDocument
from profiles.errors import ProfileError, UnknownNameError
from profiles.families import COLLECTIVES
from profiles.least_squares import fit_positive
from profiles.priced import Priced, modelled, stated
from profiles.roofline import wire_bytes
from profiles.sizes import Sizes

Floats = npt.NDArray[np.float64]

FABRIC = "fabric"
SMALLEST_FITTED_BYTES = 64 * 1024


@dataclass(frozen=True)
class Link:
    """The link between nodes: bytes per second per GPU and direction, seconds per step, and who says so.

    `source` is `stated`, `log:NAME` for a fit, whose median relative error is `fit_error`, or whom a preset cites. A
    fit is of rings with `ranks_per_node` GPUs in each node, and as many ports; None: of unlike ones, or no fit.
    """

    bandwidth_bytes_per_s: float
    latency_s: float
    source: str = STATED
    fit_error: float | None = None
    ranks_per_node: float | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.bandwidth_bytes_per_s) and self.bandwidth_bytes_per_s > 0):
            raise ProfileError(
                f"expected a link bandwidth > 0, got {self.bandwidth_bytes_per_s}",
                code="out_of_range",
                where="bandwidth_bytes_per_s",
            )
        if not (np.isfinite(self.latency_s) and self.latency_s >= 0):
            raise ProfileError(
                f"expected a link latency >= 0, got {self.latency_s}", code="out_of_range", where="latency_s"
            )


@dataclass(frozen=True)
class Cluster:
    """`num_ranks` GPUs on nodes of `gpus_per_node`; `link` is None when no price between nodes is known.

    `device_classes` hold the tiers; left out, they are one class of two tiers, the node and what `link` says. Where
    classes have nodes of different sizes, `gpus_per_node` is the greatest number that divides all of them.
    """

    num_ranks: int
    gpus_per_node: int
    link: Link | None = None
    device_classes: tuple[DeviceClass, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        if self.num_ranks < 1 or self.gpus_per_node < 1:
            raise ProfileError("expected num_ranks >= 1 and gpus_per_node >= 1", code="out_of_range", where="num_ranks")
        if self.num_ranks > self.gpus_per_node and self.num_ranks % self.gpus_per_node:
            raise ProfileError(
                f"num_ranks {self.num_ranks} does not fill nodes of {self.gpus_per_node}",
                code="out_of_range",
                where="gpus_per_node",
            )
        if not self.device_classes:
            object.__setattr__(self, "device_classes", (self._two_tiers(),))

    def _two_tiers(self) -> DeviceClass:
        node = min(self.gpus_per_node, self.num_ranks)
        fabric = Tier(FABRIC)
        if self.link is not None:
            said = {"bandwidth_bytes_per_s": self.link.source, "latency_s": self.link.source}
            fabric = Tier(FABRIC, None, self.link.bandwidth_bytes_per_s, self.link.latency_s, sources=said)
        tiers = (Tier(NODE, node), fabric)
        return DeviceClass("gpu", self.num_ranks // node, node, self.num_ranks, tiers)

    def nodes(self, ranks: int) -> int:
        """Nodes that `ranks` consecutive ranks starting on a node boundary occupy."""
        covered = ((device, min(ranks - device.first_rank, device.num_ranks)) for device in self.device_classes)
        return sum(-(-count // device.gpus_per_node) for device, count in covered if count > 0)

    def class_of(self, rank: int) -> DeviceClass:
        """The device class that holds a rank. Raises `ProfileError` (out_of_range)."""
        return class_of(self.device_classes, rank)

    def link_between(self, rank_a: int, rank_b: int, active: Iterable[int] = ()) -> Crossing:
        """The way between two ranks: tiers, ports, bandwidth in bytes per second and latency in seconds.

        `active` are ranks that communicate across the same tiers at once; those behind the same port share it.
        Raises `ProfileError` if a rank does not exist, both are the same, or no tier joins them.
        """
        return between(self.device_classes, rank_a, rank_b, active, cluster=self.name)

    def group_link(self, ranks: Iterable[int]) -> Crossing:
        """The bottleneck of a collective over `ranks`, all of them communicating at once, and how many share its port.

        Raises `ProfileError` for fewer than two ranks, or ranks that no tier joins.
        """
        return around(self.device_classes, ranks, cluster=self.name)

    def between_nodes(self) -> Crossing:
        """What a collective over all ranks crosses outside their nodes. Raises `ProfileError` on a single node."""
        return around(self.device_classes, range(self.num_ranks), cluster=self.name, outside_nodes=True)

    def network_collective(self, operation: str, message_bytes: Sizes, ranks: Sizes) -> Priced:
        """Seconds of a collective whose ranks lie on several nodes. Message convention of `Profile.collective`.

        Ring over n ranks, S = message_bytes: (n - 1) latency + (n - 1)/n S / bandwidth for all_gather,
        reduce_scatter and all_to_all, twice both for all_reduce, latency + S / bandwidth for send_recv. The slowest
        hop crosses nodes and holds the others back, so the bandwidth is the link's.
        Raises `ProfileError` (missing_field) without a link.
        """
        if self.link is None:
            if self.name:
                self.between_nodes().require()
            raise ProfileError(
                "this operation crosses nodes and the cluster has no link: state its bandwidth and latency, or import "
                "a nccl-tests log of two or more nodes",
                code="missing_field",
                where="cluster.link",
            )
        shape = np.broadcast_shapes(np.shape(message_bytes), np.shape(ranks))
        size = np.full(shape, message_bytes, dtype=np.float64)
        count = np.full(shape, ranks, dtype=np.float64)
        if not (np.isfinite(size).all() and (size >= 0).all() and (count >= 1).all()):
            raise ProfileError("expected message_bytes >= 0 and ranks >= 1", code="out_of_range")
        seconds = ring_seconds(operation, size, count, self.link.latency_s, self.link.bandwidth_bytes_per_s)
        return stated(seconds) if self.link.source == STATED else modelled(seconds)


def cluster_of_classes(classes: Sequence[DeviceClass], name: str) -> Cluster:
    """A cluster of device classes. Its `link` is what all ranks have between nodes while all communicate.

    It is None where that was not stated in full, and `network_collective` then says which tier lacks what.
    Raises `ProfileError` if no tier joins the nodes.
    """
    total = sum(device.num_ranks for device in classes)
    node = math.gcd(*(device.gpus_per_node for device in classes))
    cluster = Cluster(total, node, None, tuple(classes), name)
    if sum(device.nodes for device in classes) < 2:
        return cluster
    crossing = cluster.between_nodes()
    if crossing.bandwidth_bytes_per_s is None or crossing.latency_s is None:
        return cluster
    return replace(cluster, link=Link(crossing.bandwidth_bytes_per_s, crossing.latency_s, crossing.source))


def ring_steps(operation: str, ranks: Floats) -> Floats:
    """Steps of the ring: n - 1, twice that for all_reduce, 1 for send_recv."""
    if operation not in COLLECTIVES:
        raise UnknownNameError("collective", operation, COLLECTIVES, code="out_of_range")
    if operation == "send_recv":
        return np.ones_like(ranks)
    return (2.0 if operation == "all_reduce" else 1.0) * (ranks - 1.0)


def ring_seconds(operation: str, message_bytes: Floats, ranks: Floats, latency_s: float, bandwidth: float) -> Floats:
    """steps x latency + bytes on the wire / bandwidth."""
    return np.asarray(
        ring_steps(operation, ranks) * latency_s + wire_bytes(operation, message_bytes, ranks) / bandwidth
    )


def fit_link(document: ProfileDocument) -> Link:
    """A link fitted to the collectives of two or more nodes in an imported log, robust to spikes.

    In-place rows repeat the out-of-place ones and are left out; messages under 64 KiB too where four others are left,
    because they run other protocols than the messages a plan is about.
    Raises `ProfileError` (missing_field) if fewer than four rows span two nodes.
    """
    parts = []
    per_node: set[float] = set()
    for table in document.tables:
        if table.family in COLLECTIVES and table.backend != "nccl_in_place":
            columns = table.cost_table().columns
            rows = columns["nodes"] >= 2
            large = rows & (columns["message_bytes"] >= SMALLEST_FITTED_BYTES)
            rows = large if np.count_nonzero(large) >= 4 else rows
            size, ranks = columns["message_bytes"][rows], columns["ranks"][rows]
            parts.append(
                (table.family, size.astype(np.float64), ranks.astype(np.float64), np.asarray(table.latency_s)[rows])
            )
            per_node.update((ranks / columns["nodes"][rows]).tolist())
    seconds = np.concatenate([part[3] for part in parts]) if parts else np.zeros(0)
    if len(seconds) < 4:
        raise ProfileError(
            f"{document.name} has {len(seconds)} rows measured across nodes; at least 4 are needed to fit a link",
            code="missing_field",
            where="tables",
        )

    def price(coefficients: Floats) -> Floats:
        latency, bandwidth = coefficients.tolist()
        return np.concatenate([ring_seconds(op, size, ranks, latency, bandwidth) for op, size, ranks, _ in parts])

    latency, bandwidth = fit_positive(price, np.array([1e-5, 2e10]), seconds).tolist()
    error = float(np.median(np.abs(price(np.array([latency, bandwidth])) / seconds - 1.0)))
    same = per_node.pop() if len(per_node) == 1 else None
    source = f"log:{document.name}"
    return Link(float(f"{bandwidth:.4e}"), float(f"{latency:.4e}"), source, float(f"{error:.3e}"), same)
