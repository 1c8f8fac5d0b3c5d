"""Clusters in tiers: who shares which port, what a collective crosses, and what nobody stated."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles.cluster import STATED, Cluster, Link
from profiles.clusters.library import cluster_names, cluster_of, load_cluster
from profiles.errors import ProfileError, UnknownNameError
from profiles.library import names as profile_names

MINE = """
name: mine
device: My Card
tiers:
  pair: {gpus: 2, bandwidth_bytes_per_s: 60e9, port: NVLink}
  node: {gpus: 8, bandwidth_bytes_per_s: 30e9, port: PCIe slot}
  rack: {gpus: 32, bandwidth_bytes_per_s: 50e9, latency_s: 5e-6, port: NIC, gpus_per_port: 2}
  fabric: {bandwidth_bytes_per_s: 200e9, latency_s: 1e-5, port: uplink, gpus_per_port: 32, through: [rack]}
nodes: 16
"""


@pytest.fixture
def mine(tmp_path: Path) -> Cluster:
    """16 nodes of 8: NVLink pairs, PCIe, a NIC for two GPUs, an uplink for each rack of 4 nodes."""
    path = tmp_path / "mine.yaml"
    path.write_text(MINE, encoding="utf-8")
    return load_cluster(path)


def test_a_dozen_lines_make_a_cluster_of_four_tiers(mine: Cluster) -> None:
    assert (mine.name, mine.num_ranks, mine.gpus_per_node, mine.nodes(17)) == ("mine", 128, 8, 3)
    (device,) = mine.device_classes
    assert [tier.name for tier in device.tiers] == ["pair", "node", "rack", "fabric"]
    assert device.tier("rack").sources == {"bandwidth_bytes_per_s": STATED, "latency_s": STATED}


def test_tiers_are_ordered_by_size_and_not_by_place_in_the_file(mine: Cluster) -> None:
    # Canonical JSON sorts keys: fabric, node, pair, rack.
    tiers = {
        "fabric": {"bandwidth_bytes_per_s": 50e9},
        "node": {"gpus": 8, "bandwidth_bytes_per_s": 30e9},
        "pair": {"gpus": 2},
    }
    (device,) = cluster_of({"nodes": 2, "tiers": tiers}, "sorted").device_classes
    assert [tier.name for tier in device.tiers] == ["pair", "node", "fabric"]


@pytest.mark.parametrize(
    ("one", "other", "tier", "bandwidth", "latency"),
    [
        (0, 1, "pair", 60e9, None),
        (1, 2, "node", 30e9, None),
        (0, 8, "rack", 50e9, 5e-6),
        (31, 8, "rack", 50e9, 5e-6),
        # Through the NIC (50 GB/s) and the uplink (200 GB/s): alone the NIC is the slower one.
        (0, 32, "rack", 50e9, 1e-5),
    ],
)
def test_two_ranks_meet_in_the_innermost_tier_that_holds_both(
    mine: Cluster, one: int, other: int, tier: str, bandwidth: float, latency: float | None
) -> None:
    way = mine.link_between(one, other)
    assert (way.tier, way.bandwidth_bytes_per_s, way.latency_s, way.sharing) == (tier, bandwidth, latency, 1)
    assert mine.link_between(other, one).bandwidth_bytes_per_s == bandwidth


def test_two_gpus_behind_one_nic_halve_it_and_are_named(mine: Cluster) -> None:
    way = mine.link_between(2, 8, active=[3])
    assert (way.bandwidth_bytes_per_s, way.sharing) == (25e9, 2)
    assert [(hop.port, hop.ranks) for hop in way.hops] == [("NIC 1 of node 0", (2, 3)), ("NIC 0 of node 1", (8,))]
    # Rank 4 has another NIC, so it takes nothing away.
    assert mine.link_between(2, 8, active=[4]).bandwidth_bytes_per_s == 50e9


def test_links_are_full_duplex(mine: Cluster) -> None:
    # Both ranks of a pair of racks: one sends while the other receives, each port has one user.
    assert {len(hop.ranks) for hop in mine.link_between(0, 32, active=[0, 32]).hops} == {1}


def test_a_collective_is_held_back_by_its_most_shared_port(mine: Cluster) -> None:
    assert mine.group_link(range(2)).tier == "pair"
    assert mine.group_link(range(8)).bandwidth_bytes_per_s == 30e9
    # Two nodes, all 16 ranks: each NIC serves two, 25 GB/s, less than the 30 GB/s of PCIe.
    two = mine.group_link(range(16))
    assert (two.tier, two.bandwidth_bytes_per_s, two.sharing, two.latency_s) == ("rack", 25e9, 2, 5e-6)
    # One rank of each node leaves its NIC to itself, so PCIe is not crossed and the NIC carries 50 GB/s.
    assert mine.group_link([0, 8, 16, 24]).bandwidth_bytes_per_s == 50e9
    # Two racks, all 64 ranks: 32 share an uplink of 200 GB/s, 6.25 GB/s each.
    racks = mine.group_link(range(64))
    assert (racks.tier, racks.bandwidth_bytes_per_s, racks.sharing, racks.outermost) == ("fabric", 6.25e9, 32, "fabric")


@given(ranks=st.sets(st.integers(0, 31), min_size=2, max_size=12), more=st.integers(0, 31))
def test_one_more_rank_never_leaves_the_others_more_bandwidth(ranks: set[int], more: int) -> None:
    tiers = {
        "node": {"gpus": 8, "bandwidth_bytes_per_s": 100e9},
        "fabric": {"bandwidth_bytes_per_s": 50e9, "gpus_per_port": 4},
    }
    cluster = cluster_of({"nodes": 4, "tiers": tiers}, "c")
    with_more = cluster.group_link(ranks | {more})
    assert (with_more.bandwidth_bytes_per_s or 0) <= (cluster.group_link(ranks).bandwidth_bytes_per_s or 0)


def test_the_link_between_nodes_counts_everyone(mine: Cluster) -> None:
    assert mine.link == Link(200e9 / 32, 1e-5, STATED)
    price = mine.network_collective("send_recv", 6.25e9, 2)
    assert float(price.seconds) == pytest.approx(1.0 + 1e-5)
    assert price.shares()["stated"] == 1.0


def test_classes_of_devices_number_their_ranks_in_turn_and_name_their_profiles() -> None:
    document = {
        "name": "two-pools",
        "device_classes": [
            {"name": "attention", "preset": "dgx-h100", "nodes": 2, "tiers": {"fabric": {"latency_s": 8e-6}}},
            {"name": "experts", "preset": "dgx-a100", "nodes": 3, "tiers": {"fabric": {"latency_s": 1e-5}}},
        ],
    }
    cluster = cluster_of(document, "two-pools")
    assert [(d.name, d.profile, d.first_rank, d.num_ranks) for d in cluster.device_classes] == [
        ("attention", "h100-sxm", 0, 16),
        ("experts", "a100-sxm", 16, 24),
    ]
    assert cluster.class_of(16).name == "experts"
    assert cluster.nodes(40) == 5
    assert cluster.group_link(range(8)).bandwidth_bytes_per_s == 450e9
    assert cluster.group_link(range(16, 24)).bandwidth_bytes_per_s == 300e9
    # Between the pools the slower NIC holds both back: 200 Gb/s of a DGX A100; and the slower step counts.
    way = cluster.link_between(0, 39)
    assert (way.bandwidth_bytes_per_s, way.latency_s) == (25e9, 1e-5)
    assert [hop.port for hop in way.hops] == ["NIC 0 of node 0", "NIC 7 of node 4"]
    assert cluster.link is not None
    assert cluster.network_collective("all_gather", 1e9, 40).shares()["modelled"] == 1.0


def test_nodes_of_different_sizes_may_stand_in_one_cluster() -> None:
    fabric = {"bandwidth_bytes_per_s": 1e9}
    classes = [
        {"name": "big", "nodes": 1, "tiers": {"node": {"gpus": 8}, "fabric": fabric}},
        {"name": "small", "nodes": 3, "tiers": {"node": {"gpus": 4}, "fabric": fabric}},
    ]
    cluster = cluster_of({"device_classes": classes}, "mixed")
    assert (cluster.num_ranks, cluster.gpus_per_node, [cluster.nodes(n) for n in (8, 9, 20)]) == (20, 4, [1, 2, 4])


def test_three_numbers_are_a_cluster_of_two_tiers() -> None:
    cluster = Cluster(16, 8, Link(50e9, 1e-5))
    assert [tier.name for tier in cluster.device_classes[0].tiers] == ["node", "fabric"]
    assert cluster.link_between(0, 8).require() == (50e9, 1e-5)
    with pytest.raises(ProfileError, match="bandwidth_bytes_per_s of tier node"):
        cluster.group_link(range(16)).require()


@pytest.mark.parametrize("name", cluster_names())
def test_every_number_of_a_preset_says_who_states_it(name: str) -> None:
    cluster = load_cluster(name)
    (device,) = cluster.device_classes
    assert cluster.name == name
    assert device.profile is None or device.profile in profile_names()
    assert device.memory_bytes is None or "memory_bytes" in device.sources
    assert device.nodes == 1 or "nodes" in device.sources
    for tier in device.tiers:
        numbers = {"gpus": tier.gpus, "bandwidth_bytes_per_s": tier.bandwidth_bytes_per_s, "latency_s": tier.latency_s}
        assert {field for field, value in numbers.items() if value is not None} <= tier.sources.keys()
        assert STATED not in tier.sources.values()
        assert tier.gpus_per_port == 1 or "gpus_per_port" in tier.sources


@pytest.mark.parametrize(
    ("name", "gpus", "node", "fabric"),
    [
        # GB/s of one GPU in one direction, from the vendor's sum over both directions (NVLink) and Gb/s (NIC).
        ("dgx-a100", 8, 600 / 2, 200 / 8),
        ("dgx-h100", 8, 900 / 2, 400 / 8),
        ("dgx-h200", 8, 900 / 2, 400 / 8),
        ("dgx-b200", 8, 14_400 / 8 / 2, 400 / 8),
        ("gb200-nvl72", 4, 1800 / 2, 400 / 8),
        ("a800-node", 8, 400 / 2, None),
        # 16 lanes of 16 GT/s, 128 bits in 130.
        ("a6000-node", 8, round(16 * 16 * 128 / 130 / 8, 1), None),
    ],
)
def test_presets_hold_the_vendors_numbers(name: str, gpus: int, node: float, fabric: float | None) -> None:
    (device,) = load_cluster(name).device_classes
    assert device.gpus_per_node == gpus
    assert device.tier("node").bandwidth_bytes_per_s == node * 1e9
    assert device.tier("fabric").bandwidth_bytes_per_s == (None if fabric is None else fabric * 1e9)


def test_a_preset_that_names_a_profile_leaves_the_memory_to_it() -> None:
    # A datasheet's 80 GB are 80 GiB on the device, and the profile has these: one number however a cluster is written.
    from profiles.library import load

    for name in cluster_names():
        (device,) = load_cluster(name).device_classes
        if device.profile is not None:
            assert device.memory_bytes is None
            assert load(device.profile).device.memory_bytes is not None


def test_pairs_of_a6000_are_faster_than_the_box() -> None:
    box = load_cluster("a6000-node")
    assert box.link_between(0, 1).bandwidth_bytes_per_s == 112.5e9 / 2
    assert box.link_between(1, 2).tier == "node"


def test_a_field_of_a_preset_is_replaced_in_a_line_and_is_then_the_users() -> None:
    changed = cluster_of({"preset": "dgx-h100", "nodes": 4, "tiers": {"fabric": {"latency_s": 1.2e-5}}}, "c")
    assert changed.num_ranks == 32
    assert changed.link is not None
    assert (changed.link.bandwidth_bytes_per_s, changed.link.latency_s) == (50e9, 1.2e-5)
    assert "ConnectX-7" in changed.link.source
    tier = cluster_of({"preset": "dgx-h100", "tiers": {"fabric": {"bandwidth_bytes_per_s": 45e9}}}, "c")
    assert tier.device_classes[0].tier("fabric").sources["bandwidth_bytes_per_s"] == STATED


def test_a_collective_across_an_unstated_tier_is_refused_and_says_how_to_state_it() -> None:
    with pytest.raises(ProfileError, match=r"latency_s of tier fabric of cluster dgx-h100.*tiers: {fabric: ") as caught:
        cluster_of({"preset": "dgx-h100", "nodes": 2}, "c").network_collective("all_gather", 1e6, 16)
    assert (caught.value.code, caught.value.where) == ("missing_field", "tiers.fabric.latency_s")
    with pytest.raises(ProfileError, match="bandwidth_bytes_per_s of tier fabric") as caught:
        cluster_of({"preset": "a800-node", "nodes": 2}, "c").group_link(range(16)).require()
    assert caught.value.where == "tiers.fabric.bandwidth_bytes_per_s"


def test_an_unknown_preset_lists_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match=r"did you mean 'dgx-h100'\? Known: a6000-node, a800-node, dgx"
    ) as caught:
        load_cluster("dgx-h10")
    assert caught.value.code == "unknown_profile"
    with pytest.raises(UnknownNameError) as inside:
        cluster_of({"device_classes": [{"name": "a", "preset": "dgx"}]}, "c")
    assert inside.value.where == "device_classes.0.preset"


@pytest.mark.parametrize(
    ("document", "code", "where", "says"),
    [
        ({"preset": "dgx-h100", "nods": 4}, "unknown_field", "nods", "did you mean 'nodes'"),
        ({"tiers": {"node": {"gpu": 8}}}, "unknown_field", "tiers.node.gpu", "did you mean 'gpus'"),
        ({"preset": "dgx-h100", "tiers": {"fabrc": {}}}, "out_of_range", "tiers", "'fabric' both lack gpus"),
        ({"tiers": {"node": {"gpus": "8"}}}, "wrong_type", "tiers.node.gpus", "integer"),
        ({"tiers": {"node": {"gpus": True}}}, "wrong_type", "tiers.node.gpus", "integer"),
        ({"tiers": {"node": {"gpus": 0}}}, "out_of_range", "tiers.node.gpus", "greater than or equal to 1, got 0"),
        ({"tiers": {"fabric": {}}}, "missing_field", "tiers.node", "number of gpus"),
        (
            {"tiers": {"node": {"gpus": 8}, "rack": {"gpus": 12}}},
            "out_of_range",
            "tiers.rack.gpus",
            "multiple of the 8",
        ),
        ({"tiers": {"node": {"gpus": 8}, "rack": {"gpus": 8}}}, "out_of_range", "tiers.rack.gpus", "multiple"),
        (
            {"tiers": {"node": {"gpus": 8, "gpus_per_port": 3}}},
            "out_of_range",
            "tiers.node.gpus_per_port",
            "divide the node's 8",
        ),
        (
            {"tiers": {"node": {"gpus": 8}, "fabric": {"through": ["rack"]}}},
            "out_of_range",
            "tiers.fabric.through",
            "inside 'fabric' (node), got 'rack'",
        ),
        ({"nodes": 2, "tiers": {"node": {"gpus": 8}}}, "missing_field", "tiers", "no tier joins ranks 7 and 8"),
        ({"device_classes": []}, "out_of_range", "device_classes", "got none"),
        ({"device_classes": [{}]}, "missing_field", "device_classes.0.name", "name of its own"),
        ({"nodes": 2, "device_classes": [{"preset": "dgx-h100"}]}, "out_of_range", "device_classes", '"nodes" beside'),
        (
            {"device_classes": [{"preset": "dgx-h100"}, {"preset": "dgx-h100"}]},
            "duplicate_id",
            "device_classes.1.name",
            "of its own",
        ),
        (
            {"tiers": {"node": {"gpus": 8, "gpus_per_port": 16}}},
            "out_of_range",
            "tiers.node.gpus_per_port",
            "divide the 8 gpus that can share a port",
        ),
        (
            {"tiers": {"node": {"gpus": 8}, "rack": {"gpus": 32, "gpus_per_port": 64}}},
            "out_of_range",
            "tiers.rack.gpus_per_port",
            "divide the 32 gpus",
        ),
        ({"preset": "dgx-h100", "gpus": 3}, "unknown_field", "gpus", "unknown field 'gpus'"),
        (
            {"preset": "dgx-h100", "tiers": {"node": {"node": 3}}},
            "unknown_field",
            "tiers.node.node",
            "unknown field 'node'",
        ),
        ({"nodes": 1 << 17, "tiers": {"node": {"gpus": 8}}}, "out_of_range", "nodes", "at most"),
        ({"format_version": "2.0"}, "unsupported_version", "format_version", "2.0"),
        ([], "wrong_type", None, "object"),
        ({"tiers": {"node": {"gpus": 8, "latency_s": float("nan")}}}, "not_finite", "tiers.node.latency_s", "finite"),
    ],
)
def test_a_broken_cluster_is_refused_with_its_place(document: object, code: str, where: str | None, says: str) -> None:
    with pytest.raises(ProfileError) as caught:
        cluster_of(document, "c.yaml")
    assert (caught.value.code, caught.value.where) == (code, where)
    assert says in caught.value.message


HOSTILE = st.sampled_from(
    [None, True, -1, 0, 8, 2**70, 1.5, float("nan"), "", "x", "dgx-a100", [], ["x"], {}, [{}], "1.0"]
)
ANYTHING = HOSTILE | st.dictionaries(
    st.sampled_from(["node", "fabric", "gpus", "port"]),
    HOSTILE
    | st.dictionaries(st.sampled_from(["gpus", "gpus_per_port", "through", "latency_s", "x"]), HOSTILE, max_size=2),
    max_size=2,
)
KEYS = ["name", "preset", "nodes", "device", "profile", "memory_bytes", "tiers", "sources", "device_classes", "notes"]


@given(document=st.dictionaries(st.sampled_from([*KEYS, "format_version"]), ANYTHING, max_size=4), based=st.booleans())
def test_whatever_a_cluster_holds_is_read_or_refused(document: dict[str, object], based: bool) -> None:
    try:
        assert cluster_of({"preset": "dgx-h100", **document} if based else document, "c").num_ranks >= 1
    except ProfileError as error:
        assert error.message


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nodes: 1\nnodes: 2\n", "duplicate_id"),
        ("a: &x 1\nb: *x\n", "not_json"),
        ("tiers: [", "not_json"),
        ("", "not_json"),
        ("version https://git-lfs.github.com/spec/v1\n", "not_json"),
        ("nodes: .nan\n", "not_finite"),
        ("x: !!python/object/apply:os.system ['true']\n", "not_json"),
    ],
)
def test_yaml_is_read_safely(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        load_cluster(path)
    assert caught.value.code == code


def test_json_says_the_same_as_yaml(mine: Cluster, tmp_path: Path) -> None:
    import json

    import yaml

    path = tmp_path / "mine.json"
    # PyYAML reads 60e9 as text (YAML 1.1), so the numbers are written out here.
    document = yaml.safe_load(MINE)
    for tier in document["tiers"].values():
        tier.update({key: float(tier[key]) for key in ("bandwidth_bytes_per_s", "latency_s") if key in tier})
    path.write_text(json.dumps(document), encoding="utf-8")
    assert load_cluster(path) == mine


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"cannot read the cluster no\.yaml"):
        load_cluster(tmp_path / "no.yaml")


def test_ranks_that_are_not_there_are_refused(mine: Cluster) -> None:
    for call in (lambda: mine.link_between(0, 128), lambda: mine.group_link([-1, 0]), lambda: mine.class_of(128)):
        with pytest.raises(ProfileError, match="expected ranks from 0 to 127"):
            call()
    with pytest.raises(ProfileError, match="two different ranks"):
        mine.link_between(3, 3)
    with pytest.raises(ProfileError, match="at least two ranks, got 1"):
        mine.group_link([3, 3])


def test_an_unknown_field_is_likened_only_to_fields_that_may_stand_there() -> None:
    for document in ({"preset": "dgx-h100", "gpus": 3}, {"preset": "dgx-h100", "tiers": {"node": {"memory_bytes": 3}}}):
        with pytest.raises(ProfileError) as caught:
            cluster_of(document, "c.yaml")
        assert "did you mean" not in caught.value.message
    with pytest.raises(ProfileError, match="did you mean 'latency_s'"):
        cluster_of({"preset": "dgx-h100", "tiers": {"fabric": {"latency": 3}}}, "c.yaml")


def test_a_port_of_several_pairs_may_serve_an_inner_tier() -> None:
    tiers = {"pair": {"gpus": 2, "gpus_per_port": 4, "bandwidth_bytes_per_s": 1e9}, "node": {"gpus": 8}}
    assert cluster_of({"tiers": tiers}, "c.yaml").link_between(0, 1, [1, 2, 3]).sharing == 4


def test_what_a_device_class_lacks_is_named_in_that_class() -> None:
    own = {"fabric": {"latency_s": 1e-5}}
    classes = [{"preset": "dgx-h100", "tiers": own}, {"preset": "dgx-a100"}]
    with pytest.raises(ProfileError) as caught:
        cluster_of({"device_classes": classes}, "c.yaml").between_nodes().require()
    assert caught.value.where == "device_classes.1.tiers.fabric.latency_s"
