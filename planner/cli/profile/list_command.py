"""``plan profile list``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from planner.json_text import Json
    from profiles.clusters.tiers import DeviceClass


@click.command(
    "list", epilog="Examples: plan profile list --format json   plan profile list --clusters dgx-h100 ./mine.yaml"
)
@click.option("--clusters", is_flag=True, help="The clusters instead: nodes, tiers and the profile they go with.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
@click.argument("names", nargs=-1)
def command(names: tuple[str, ...], clusters: bool, form: str) -> None:
    """The built-in profiles with device, rows and families, or only those of NAMES (files too).

    With --clusters the clusters: what one port of a tier carries in one direction, and a step's latency. What nobody
    stated is "-" in the table and null in JSON, which also names the source of each number.
    """
    if clusters:
        _list_clusters(names, form)
        return
    from planner.cli.profile.overview import overview, print_json
    from profiles import library

    rows = [overview(library.load(name)) for name in names or library.names()]
    if form == "json":
        print_json(rows)
        return
    from planner.console import print_table
    from planner.units import in_bytes

    print_table(
        ("name", "device", "memory", "rows", "families"),
        [(r["name"], r["device"], in_bytes(r["memory_bytes"]), str(r["rows"]), ", ".join(r["families"])) for r in rows],
    )


def _list_clusters(names: tuple[str, ...], form: str) -> None:
    from planner.cli.profile.overview import print_json
    from profiles.clusters.library import cluster_names, load_cluster

    found = [load_cluster(name) for name in names or cluster_names()]
    if form == "json":
        print_json([{"name": c.name, "device_classes": [_document(d) for d in c.device_classes]} for c in found])
        return
    from planner.console import print_table

    print_table(
        ("cluster", "nodes", "profile", "tier", "GPUs", "port", "GB/s", "us"),
        [row for cluster in found for device in cluster.device_classes for row in _rows(cluster.name, device)],
    )


def _rows(cluster: str, device: DeviceClass) -> list[tuple[str, ...]]:
    name = cluster if device.name == cluster else f"{cluster}: {device.name}"
    heads = [(name, f"{device.nodes} x {device.gpus_per_node}", device.profile or "-")]
    heads += [("", "", "")] * (len(device.tiers) - 1)
    return [
        (
            *head,
            tier.name,
            "all" if tier.gpus is None else str(tier.gpus),
            tier.port if tier.gpus_per_port == 1 else f"{tier.port} of {tier.gpus_per_port}",
            "-" if tier.bandwidth_bytes_per_s is None else f"{tier.bandwidth_bytes_per_s / 1e9:g}",
            "-" if tier.latency_s is None else f"{tier.latency_s * 1e6:g}",
        )
        for head, tier in zip(heads, device.tiers, strict=True)
    ]


def _document(device: DeviceClass) -> dict[str, Json]:
    from dataclasses import asdict

    return asdict(device)
