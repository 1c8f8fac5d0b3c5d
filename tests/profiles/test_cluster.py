"""Links between nodes: stated or fitted, and the plan can tell which."""

from pathlib import Path

import numpy as np
import pytest

from profiles.cluster import Cluster, Link, fit_link, ring_seconds
from profiles.document import Device, ProfileDocument, Provenance
from profiles.errors import ProfileError, UnknownNameError
from profiles.importers import run
from profiles.making.building import RawRows, build_table

DATA = Path(__file__).parents[1] / "data" / "nccl_logs"


def test_the_ring_has_n_minus_one_steps_and_sends_its_share() -> None:
    # 16 ranks, 1.6 GB gathered, 50 GB/s, 10 us: 15 x 10 us + 15/16 x 1.6e9 / 50e9 = 150 us + 30 ms.
    cluster = Cluster(16, 8, Link(50e9, 1e-5))
    price = cluster.network_collective("all_gather", 1.6e9, 16)
    assert float(price.seconds) == pytest.approx(15e-5 + 0.03)
    assert price.shares()["stated"] == 1.0
    assert float(cluster.network_collective("all_reduce", 1.6e9, 16).seconds) == pytest.approx(2 * (15e-5 + 0.03))
    assert float(cluster.network_collective("send_recv", 1e9, 2).seconds) == pytest.approx(1e-5 + 0.02)


def test_prices_broadcast_over_bytes_and_ranks() -> None:
    price = Cluster(32, 8, Link(50e9, 0.0)).network_collective("all_to_all", np.array([[1e6], [2e6]]), [16, 32])
    assert price.seconds.shape == (2, 2)
    assert price.seconds[1, 0] == pytest.approx(2 * price.seconds[0, 0])


def test_ranks_occupy_whole_nodes() -> None:
    assert [Cluster(32, 8).nodes(ranks) for ranks in (1, 8, 9, 16, 32)] == [1, 1, 2, 2, 4]


def test_a_cluster_without_a_link_asks_for_one() -> None:
    with pytest.raises(ProfileError, match="state its bandwidth and latency, or import") as caught:
        Cluster(16, 8).network_collective("all_gather", 1e6, 16)
    assert (caught.value.code, caught.value.where) == ("missing_field", "cluster.link")


def test_impossible_clusters_and_links_are_refused() -> None:
    with pytest.raises(ProfileError, match="does not fill nodes of 8"):
        Cluster(12, 8)
    with pytest.raises(ProfileError, match="bandwidth > 0, got 0"):
        Link(0.0, 1e-6)
    with pytest.raises(ProfileError, match="latency >= 0"):
        Link(1e9, float("nan"))
    with pytest.raises(UnknownNameError, match="did you mean 'all_gather'"):
        Cluster(16, 8, Link(1e9, 0.0)).network_collective("allgather", 1, 16)


def two_node_log(latency: float, bandwidth: float, spike: float) -> ProfileDocument:
    size = 2 ** np.arange(16, 31)
    seconds = ring_seconds("all_gather", size * 1.0, np.full(15, 16.0), latency, bandwidth)
    seconds[7] *= spike
    columns = {"nodes": np.full(15, 2), "ranks": np.full(15, 16), "message_bytes": size}
    raw = RawRows("all_gather", "bf16", columns, seconds, "log", backend="nccl")
    return ProfileDocument(
        name="two-nodes",
        device=Device(name="card"),
        provenance=[Provenance(id="log", title="a log", licence="CC0-1.0")],
        tables=[build_table(raw)],
    )


@pytest.mark.parametrize("spike", [1.0, 16.0])
def test_a_fitted_link_finds_alpha_and_beta_despite_a_spike(spike: float) -> None:
    link = fit_link(two_node_log(2e-5, 40e9, spike))
    assert link.latency_s == pytest.approx(2e-5, rel=0.02)
    assert link.bandwidth_bytes_per_s == pytest.approx(40e9, rel=0.02)
    assert link.source == "log:two-nodes"
    assert link.ranks_per_node == 8
    assert link.fit_error is not None
    assert link.fit_error < 0.01
    price = Cluster(16, 8, link).network_collective("all_gather", 1e8, 16)
    assert price.shares()["modelled"] == 1.0


def test_a_real_log_of_two_nodes_gives_a_link_with_its_error() -> None:
    # The log prints a bus bandwidth of 22.9 GB/s at its largest message; without the latency's part that is 26 GB/s.
    document, _ = run("nccl-tests", [str(DATA / "cscs_line56.log")])
    link = fit_link(document)
    assert 22e9 < link.bandwidth_bytes_per_s < 30e9
    assert link.ranks_per_node == 1
    assert link.fit_error is not None
    assert link.fit_error < 0.1


def test_a_log_of_nodes_with_unlike_numbers_of_ranks_does_not_tell_how_many_ports_its_rings_had() -> None:
    document = two_node_log(2e-5, 40e9, 1.0)
    table = document.tables[0]
    ranks = np.where(np.arange(15) % 2, 16, 4)
    raw = RawRows(
        "all_gather",
        "bf16",
        {**table.cost_table().columns, "ranks": ranks},
        ring_seconds("all_gather", 2.0 ** np.arange(16, 31), ranks * 1.0, 2e-5, 40e9),
        "log",
        backend="nccl",
    )
    link = fit_link(document.model_copy(update={"tables": [build_table(raw)]}))
    assert link.bandwidth_bytes_per_s == pytest.approx(40e9, rel=0.02)
    assert link.ranks_per_node is None


def test_a_log_of_one_node_gives_no_link() -> None:
    document, _ = run("nccl-tests", [str(DATA / "superbenchmark_nccl_allreduce.log")])
    with pytest.raises(ProfileError, match="0 rows measured across nodes") as caught:
        fit_link(document)
    assert caught.value.code == "missing_field"
