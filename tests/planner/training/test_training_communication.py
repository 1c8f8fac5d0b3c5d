"""Seconds of what a layer's ranks exchange in training, and how measured runs correct prices."""

from __future__ import annotations

import numpy as np
import pytest
from training_cases import DENSE, GROUPED, H100, LATENT, LINK, MOE, device, grid

from planner.derivation.training.calibration import Calibration, calibrated
from planner.derivation.training.cuts import one_cut
from planner.derivation.training.ends import end_times
from planner.derivation.training.layer import layer_times
from planner.derivation.training.parts import LayerTimes
from profiles import Cluster
from profiles.clusters.library import cluster_of
from profiles.geometry import LayerRun, ModelGeometry
from profiles.geometry.feed_forward import Dense, Experts
from profiles.geometry.model import LayerKind
from profiles.priced import STATED


def collective(operation: str, message: float, ranks: int) -> float:
    return float(H100.collective(operation, message, ranks, extrapolate="roofline").seconds)


def seconds(times: LayerTimes, way: str, component: str) -> float:
    return float(times.by_component(way)[component][0])  # type: ignore[arg-type,index]


HIDDEN = 4096 * 4096 * 2.0
"""Bytes of 4,096 tokens of width 4096."""


# --- tensor parallelism -------------------------------------------------------------------------------------------


def test_sums_are_reduced_twice_a_layer_and_with_sequence_parallelism_gathered_and_scattered() -> None:
    plain = layer_times(device(), DENSE, one_cut(4096, tp=8))
    apart = layer_times(device(), DENSE, one_cut(4096, tp=8, sequence_parallel=True))
    shards = collective("all_gather", HIDDEN, 8) + collective("reduce_scatter", HIDDEN, 8)
    for way in ("forward", "backward"):
        assert seconds(plain, way, "tp") == pytest.approx(2 * collective("all_reduce", HIDDEN, 8))
        assert seconds(apart, way, "tp") == pytest.approx(2 * shards)


def test_routed_experts_alone_gather_nothing_and_shared_ones_do() -> None:
    alone = layer_times(device(), MOE, one_cut(4096, tp=8))
    assert seconds(alone, "forward", "tp") == pytest.approx(collective("all_reduce", HIDDEN, 8))
    shared = LayerKind(4096, GROUPED, Experts(8, 2, 14336, shared_ffn=2048))
    both = layer_times(device(), shared, one_cut(4096, tp=8))
    assert seconds(both, "forward", "tp") == pytest.approx(2 * collective("all_reduce", HIDDEN, 8))


def test_latent_attention_gathers_what_was_compressed() -> None:
    layer = LayerKind(4096, LATENT, Dense(14336))
    times = layer_times(device(), layer, one_cut(4096, tp=8, sequence_parallel=True))
    compressed = 4096 * (1536 + 512 + 64) * 2.0
    around_ffn = collective("all_gather", HIDDEN, 8) + collective("reduce_scatter", HIDDEN, 8)
    forward = collective("all_gather", compressed, 8) + collective("reduce_scatter", HIDDEN, 8)
    backward = collective("all_gather", HIDDEN, 8) + collective("reduce_scatter", compressed, 8)
    assert seconds(times, "forward", "tp") == pytest.approx(around_ffn + forward)
    assert seconds(times, "backward", "tp") == pytest.approx(around_ffn + backward)


def test_a_tensor_group_wider_than_a_node_goes_over_the_network() -> None:
    times = layer_times(device(cluster=Cluster(64, 4, LINK)), DENSE, one_cut(4096, tp=8))
    # a ring of 8: 14 steps, 14/8 of the message
    assert seconds(times, "forward", "tp") == pytest.approx(2 * (14 * 1e-5 + 14 / 8 * HIDDEN / 50e9))


def test_the_ends_sum_what_was_looked_up_and_gather_what_the_head_reads() -> None:
    model = ModelGeometry("m", 4096, 128_256, (LayerRun(DENSE, 1),))
    apart = one_cut(4096, tp=8, sequence_parallel=True)
    embedding = end_times(device(), model, "embedding", apart)
    head = end_times(device(), model, "head", apart)
    gather, scatter = collective("all_gather", HIDDEN, 8), collective("reduce_scatter", HIDDEN, 8)
    assert (seconds(embedding, "forward", "tp"), seconds(embedding, "backward", "tp")) == pytest.approx(
        (scatter, gather)
    )
    assert (seconds(head, "forward", "tp"), seconds(head, "backward", "tp")) == pytest.approx((gather, scatter))
    whole = end_times(device(), model, "head", one_cut(4096, tp=8))
    # forward every rank has the whole input; backward the gradients of it are summed
    assert seconds(whole, "forward", "tp") == 0
    assert seconds(whole, "backward", "tp") == pytest.approx(collective("all_reduce", HIDDEN, 8))


# --- context parallelism ------------------------------------------------------------------------------------------


def test_a_ring_in_a_node_passes_keys_and_values_on_as_an_all_gather_does() -> None:
    times = layer_times(device(), DENSE, one_cut(8192, tp=2, cp=4))
    block = 2048 * 2 * 4 * 128 * 2.0  # 2,048 tokens, keys and values of 4 heads
    assert seconds(times, "forward", "cp") == pytest.approx(collective("all_gather", 4 * block, 4))
    assert seconds(times, "backward", "cp") == pytest.approx(collective("all_gather", 8 * block, 4))


def test_a_ring_that_leaves_the_node_hops_over_the_network() -> None:
    times = layer_times(device(), DENSE, one_cut(8192, tp=8, cp=4))
    block = 2048 * 2 * 1 * 128 * 2.0
    assert seconds(times, "forward", "cp") == pytest.approx(3 * (1e-5 + block / 50e9))
    assert seconds(times, "backward", "cp") == pytest.approx(3 * (1e-5 + 2 * block / 50e9))


def test_of_the_ring_shows_what_the_attention_of_all_blocks_but_the_last_does_not_hide() -> None:
    times = layer_times(device(), DENSE, one_cut(8192, tp=8, cp=4))
    found = calibrated(times, Calibration())
    tp = seconds(times, "forward", "tp")
    hidden = seconds(times, "forward", "attention") * 3 / 4
    ring = seconds(times, "forward", "cp")
    assert found.comm_forward_s[0] - tp == pytest.approx(max(0.0, ring - hidden), abs=1e-12)
    slow = calibrated(times, Calibration(communication=100))
    assert slow.comm_forward_s[0] == pytest.approx(100 * tp + 100 * ring - hidden)
    assert slow.forward_s[0] == pytest.approx(found.forward_s[0])


# --- experts ------------------------------------------------------------------------------------------------------


def test_dispatch_and_combine_in_a_node_are_two_all_to_alls_forward_and_backward() -> None:
    times = layer_times(device(), MOE, one_cut(4096, ep=8))
    for way in ("forward", "backward"):
        assert seconds(times, way, "ep") == pytest.approx(2 * collective("all_to_all", 2 * HIDDEN, 8))


def test_over_nodes_the_slower_counts_of_the_share_on_the_island_and_the_rest_on_the_network() -> None:
    wide = LayerKind(4096, GROUPED, Experts(count=32, top_k=2, ffn=14336))
    times = layer_times(device(), wide, one_cut(4096, ep=32))
    message = 2 * HIDDEN
    network = 24 * 1e-5 + message * 24 / 32 / 50e9  # 24 of 32 ranks are in other nodes
    island = collective("all_to_all", message * 8 / 32, 8)
    assert network > island
    assert seconds(times, "forward", "ep") == pytest.approx(2 * network)
    fast = device(cluster=Cluster(64, 8, type(LINK)(1e13, 0.0)))
    assert seconds(layer_times(fast, wide, one_cut(4096, ep=32)), "forward", "ep") == pytest.approx(2 * island)


def test_ranks_that_share_experts_are_neighbours_and_leave_fewer_of_the_others_in_the_node() -> None:
    times = layer_times(device(), MOE, one_cut(4096, ep=8, etp=2))
    message = 2 * HIDDEN
    network = 4 * 1e-5 + message * 4 / 8 / 50e9  # four pairs of ranks are in a node
    shared = collective("all_gather", 2 * message, 2) + collective("reduce_scatter", 2 * message, 2)
    assert seconds(times, "forward", "ep") == pytest.approx(2 * network + shared)


# --- missing ------------------------------------------------------------------------------------------------------


def test_without_a_link_only_groups_that_leave_a_node_are_missing() -> None:
    cuts = grid(8192)
    times = layer_times(device(cluster=Cluster(64, 8)), MOE, cuts)
    leaves = ((cuts.cp > 1) & (cuts.tp * cuts.cp > 8)) | ((cuts.ep > 1) & (cuts.ep * cuts.etp > 8))
    assert times.missing.tolist() == leaves.tolist()
    assert "no link" in times.reasons["network"]


def test_what_was_stated_of_a_link_is_told_from_what_was_measured() -> None:
    times = layer_times(device(), DENSE, one_cut(8192, tp=8, cp=4))
    [ring] = [part for part in times.forward if part.component == "cp"]
    assert ring.source.tolist() == [STATED]
    found = calibrated(times, Calibration(communication=100))
    total = found.forward_s + found.backward_s + found.comm_forward_s + found.comm_backward_s
    assert found.by_source.sum(axis=0) == pytest.approx(total)
    assert sum(found.by_family.values()) == pytest.approx(total)


# --- calibration --------------------------------------------------------------------------------------------------


def test_multipliers_scale_their_component_and_a_layers_seconds_are_added() -> None:
    times = layer_times(device(), MOE, one_cut(4096, tp=2, ep=4))
    parts = {
        way: {name: float(each[0]) for name, each in times.by_component(way).items()} for way in ("forward", "backward")
    }  # type: ignore[arg-type]
    found = calibrated(
        times, Calibration(gemm=2, attention=3, experts=5, elementwise=7, communication=11, layer_s=1e-4)
    )
    weights = {"gemm": 2, "attention": 3, "experts": 5, "elementwise": 7}
    for way, mine, sent, launch in (
        ("forward", found.forward_s, found.comm_forward_s, 1e-4),
        ("backward", found.backward_s, found.comm_backward_s, 2e-4),
    ):
        assert mine[0] == pytest.approx(launch + sum(weights[name] * parts[way][name] for name in weights))
        assert sent[0] == pytest.approx(11 * (parts[way]["tp"] + parts[way]["ep"]))
    end = calibrated(times, Calibration(layer_s=1e-4), layer=False)
    assert end.forward_s[0] == pytest.approx(sum(parts["forward"][name] for name in weights))


def test_one_rank_sends_nothing() -> None:
    times = layer_times(device(cluster=Cluster(1, 1)), MOE, one_cut(4096))
    for way in ("forward", "backward"):
        assert [seconds(times, way, name) for name in ("tp", "cp", "ep")] == [0, 0, 0]
    assert np.isfinite(calibrated(times, Calibration()).forward_s).all()


def test_experts_of_one_node_ask_for_no_link_between_nodes() -> None:
    """Eight ranks of one node exchange inside it, with a cluster of tiers as with ranks that are written out."""
    cut = one_cut(4096, ep=8)
    alone = layer_times(device(cluster=cluster_of({"preset": "dgx-h100", "nodes": 1}, "one")), MOE, cut)
    assert not alone.missing.any()
    assert seconds(alone, "forward", "ep") == seconds(
        layer_times(device(cluster=Cluster(8, 8)), MOE, cut), "forward", "ep"
    )
    assert seconds(alone, "forward", "ep") > 0
