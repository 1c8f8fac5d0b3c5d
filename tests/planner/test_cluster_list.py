"""``plan profile list --clusters``: what a cluster is made of, and who says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Plan = Callable[..., Any]


def test_the_clusters_are_listed_with_what_nobody_stated_as_a_dash(plan: Plan) -> None:
    shown = plan("profile", "list", "--clusters")
    assert shown.code == 0
    lines = shown.out.splitlines()
    (h100,) = [line.split() for line in lines if line.startswith("dgx-h100")]
    assert h100 == ["dgx-h100", "1", "x", "8", "h100-sxm", "node", "8", "NVLink", "450", "-"]
    assert all(len(line) <= 80 for line in lines)


def test_json_holds_the_source_of_each_number(plan: Plan) -> None:
    (cluster,) = plan("profile", "list", "--clusters", "--format", "json", "gb200-nvl72").document
    (device,) = cluster["device_classes"]
    assert [tier["name"] for tier in device["tiers"]] == ["node", "rack", "fabric"]
    assert device["tiers"][2]["latency_s"] is None
    assert "user guide" in device["tiers"][1]["sources"]["gpus"]


def test_a_cluster_of_ones_own_is_shown_like_a_built_in_one(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("preset: dgx-h100\nnodes: 4\ntiers: {fabric: {latency_s: 1.2e-5, gpus_per_port: 2}}\n")
    shown = plan("profile", "list", "--clusters", str(path))
    assert shown.out.splitlines()[2].split() == ["fabric", "all", "NIC", "of", "2", "50", "12"]


def test_an_unknown_cluster_lists_the_known_ones(plan: Plan) -> None:
    refused = plan("profile", "list", "--clusters", "dgx-h10")
    assert refused.code == 2
    assert "did you mean 'dgx-h100'? Known: a6000-node" in refused.err


def test_profiles_are_listed_by_name_too(plan: Plan) -> None:
    assert [row["name"] for row in plan("profile", "list", "--format", "json", "l40s").document] == ["l40s"]
