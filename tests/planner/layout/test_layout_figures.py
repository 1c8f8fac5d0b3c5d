"""Times and bytes of single layouts, each term by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from layout_cases import Document, layers, problem, row, x

from planner.papers.layout.evaluate import Evaluated, bytes_by_rank, evaluate, fits
from planner.papers.layout.formulation import enumerate_all
from planner.papers.layout.layouts import Layout, groups
from planner.papers.layout.partitions import partitions
from planner.papers.layout.ties import EQUAL, front, ranked
from planner.papers.layout.walk import RankBytes

PLAIN = Layout(1, 1, 1, 1, 1, 1, 0, "none", 1, False)


def evaluated(document: Document, **changes: Any) -> Evaluated:
    """A layout evenly cut."""
    given = problem(document)
    layout = replace(PLAIN, **changes)
    (cut,) = partitions(given.model.num_layers, layout.pp, layout.vpp, ("even",))
    return evaluate(given, replace(layout, partition=cut))


def ranks_of(document: Document, **changes: Any) -> tuple[RankBytes, ...]:
    """What the ranks of a layout hold, evenly cut."""
    return bytes_by_rank(problem(document), evaluated(document, **changes))


def rows(**changes: Any) -> list[Document]:
    """Dense layers of 1 + 2 s and 1e9 parameters with other values, beside empty ends."""
    degrees = {name: value for name, value in changes.items() if name in ("tp", "cp", "sp", "micro_batch")}
    return [row("dense", **changes), row("embedding", **degrees), row("head", **degrees)]


def overlapped(share: float, **changes: Any) -> Document:
    """X of slow links: a ring over 4 ranks gathers 2e9 bytes in 1.5 s and scatters 4e9 in 3 s."""
    slow = {"alpha_s": 0, "beta_s_per_byte": 1e-9}
    document = x(**changes)
    document["costs"] |= {"collectives": {"intra": slow, "inter": slow}, "overlap": {"dp": share, "p2p": 0}}
    return document


def test_recomputation_runs_the_forward_again_with_its_traffic_or_the_selected_part() -> None:
    document = x(rows=rows(comm_forward_s=0.25, comm_backward_s=0.5, selective_s=0.125))
    seconds = {name: evaluated(document, recompute=name).stages for name in ("none", "selective", "full")}
    assert {name: each.forward_s for name, each in seconds.items()} == dict.fromkeys(seconds, (5.0,))
    assert [each.backward_s for each in seconds.values()] == [(10.0,), (10.5,), (15.0,)]


def test_the_ends_are_never_recomputed() -> None:
    ends = [row(kind, forward_s=1.0, backward_s=1.0, kept_bytes=9e9) for kind in ("embedding", "head")]
    document = x(rows=[row("dense"), *ends], cluster__gpu_memory_bytes=200e9)
    found = evaluated(document, recompute="full")
    assert found.stages.backward_s == (4 * 3.0 + 2,)
    (held,) = ranks_of(document, recompute="full")
    assert (held.activations, held.transient) == (4 * 1e8 + 2 * 9e9, 1e9 - 1e8)


@pytest.mark.parametrize(
    ("stage", "share", "forward_s", "backward_s", "tail_s"),
    [
        # Each of 4 layers; the tail's gather of 4 layers takes 6 s, its reduction 12 s, twice that as an all-reduce.
        (0, 0.0, 4.0, 8.0, 24.0),
        (0, 1.0, 4.0, 8.0, 24.0 - 8.0),
        (1, 0.0, 4.0, 8.0, 12.0 + 6.0),
        (1, 0.5, 4.0, 8.0, (12.0 - 4.0) + (6.0 - 2.0)),
        (1, 1.0, 4.0, 8.0, 4.0 + 2.0),
        (2, 0.0, 4.0, 8.0 + 4 * 3.0, 6.0),
        (2, 0.5, 4.0, 8.0 + 4 * (3.0 - 1.0), 6.0 - 2.0),
        (3, 0.0, 4.0 + 4 * 1.5, 8.0 + 4 * 4.5, 0.0),
        (3, 1.0, 4.0 + 4 * 0.5, 8.0 + 4 * 2.5, 0.0),
    ],
)
def test_shards_are_sent_in_the_tail_or_for_every_layer_as_far_as_compute_does_not_hide_them(
    stage: int, share: float, forward_s: float, backward_s: float, tail_s: float
) -> None:
    found = evaluated(overlapped(share), zero_stage=stage)
    assert found.stages.forward_s == pytest.approx((forward_s,), rel=1e-12)
    assert found.stages.backward_s == pytest.approx((backward_s,), rel=1e-12)
    assert found.tail_s == pytest.approx(tail_s, rel=1e-12)


def test_latency_is_paid_for_each_collective_of_what_there_is_to_send() -> None:
    document = x()
    document["costs"]["collectives"]["intra"] = {"alpha_s": 1.0, "beta_s_per_byte": 0}
    assert evaluated(document, zero_stage=1).tail_s == 3.0 + 3.0  # 3 hops of a ring; no experts, no second ring
    # Forward gather and backward gather and scatter, of each of 4 layers; the ends have no parameters.
    assert sum(evaluated(document, zero_stage=3).stages.forward_s) == 4.0 + 4 * 3.0
    assert sum(evaluated(document, zero_stage=3).stages.backward_s) == 8.0 + 4 * 6.0


def test_a_group_that_leaves_the_node_pays_the_network() -> None:
    inside = evaluated(x(), pp=2)
    outside = evaluated(x(cluster__gpus_per_node=1), pp=2)
    assert outside.tail_s == pytest.approx(10 * inside.tail_s, rel=1e-12)
    # 4 GPUs of 2 nodes, t first: tp 2 x dp 2 crosses, and so does a hop of any pipeline.
    given = problem(x(cluster__gpus_per_node=2, model__num_heads=8))
    crossing = groups(given, replace(PLAIN, tp=2))
    assert (crossing.dense_crosses, crossing.expert_crosses, crossing.hop_crosses) == (True, True, True)
    assert not groups(given, replace(PLAIN, pp=2)).dense_crosses


@pytest.mark.parametrize(
    ("gpus", "node", "degrees", "dense", "experts"),
    [
        (16, 8, {}, 8, 8),
        (16, 8, {"tp": 2, "ep": 4, "etp": 2}, 4, 1),
        (16, 8, {"tp": 8, "ep": 16}, 1, 1),
        (24, 8, {"ep": 3}, 8, 2),  # ranks 1, 4, 7 | 10, 13 | 16, 19, 22: two in the second node
        (24, 8, {"pp": 2, "tp": 2}, 2, 4),  # a stage has 8 ranks of one node and 4 of another
        (12, 8, {}, 4, 4),  # so has the only stage here
    ],
)
def test_a_ring_has_as_many_ports_as_its_group_has_ranks_in_the_node_with_fewest(
    gpus: int, node: int, degrees: dict[str, int], dense: int, experts: int
) -> None:
    found = groups(problem(x(cluster__num_gpus=gpus, cluster__gpus_per_node=node)), replace(PLAIN, **degrees))
    assert (found.dense_ports, found.expert_ports) == (dense, experts)


@pytest.mark.parametrize(
    ("beta_of", "intra", "tp", "tail_s"),
    [
        # All-reduce of 4e9 gradients of 4 bytes over 16 ranks, four in each node: 2 x 15/16 x 16e9 x beta.
        ("ring", 1e-10, 1, 30.0),
        ("gpu", 1e-10, 1, 30.0 / 4),
        ("gpu", 5e-10, 1, 30.0 / 2),  # the node's own links are half as fast as one port
        # Over 8 ranks, two in each node: 2 x 7/8 x 16e9 x beta.
        ("ring", 1e-10, 2, 28.0),
        ("gpu", 1e-10, 2, 28.0 / 2),
        ("gpu", 1e-10, 4, 24.0),  # over 4 ranks, one in each node: one port
    ],
)
def test_a_port_of_each_gpu_carries_its_part_of_a_ring_between_nodes(
    beta_of: str, intra: float, tp: int, tail_s: float
) -> None:
    document = x(cluster__num_gpus=16, batch__global_batch_size=16, rows=rows(tp=tp))
    document["costs"]["collectives"] = {
        "intra": {"alpha_s": 0, "beta_s_per_byte": intra},
        "inter": {"alpha_s": 0, "beta_s_per_byte": 1e-9, "beta_of": beta_of},
    }
    assert evaluated(document, tp=tp).tail_s == pytest.approx(tail_s, rel=1e-12)


def test_hops_are_paid_forward_but_for_the_last_stage_and_backward_but_for_the_first() -> None:
    document = x(costs__boundary_bytes_per_sample=8.0)
    document["costs"]["p2p"]["intra"] = {"alpha_s": 0.5, "beta_s_per_byte": 0.25}
    document["costs"]["overlap"]["p2p"] = 0.5
    # (1 - 0.5) (0.5 + 0.25 x 8) = 1.25 s.
    found = evaluated(document, pp=4)
    assert found.stages.forward_s == (2.25, 2.25, 2.25, 1.0)
    assert found.stages.backward_s == (2.0, 3.25, 3.25, 3.25)
    assert evaluated(document).stages.forward_s == (4.0,)


def test_a_hop_carries_what_context_and_sequence_parallelism_leave_of_a_sequence() -> None:
    document = x(
        cluster__num_gpus=16,
        cluster__gpus_per_node=16,
        costs__boundary_bytes_per_sample=64.0,
        rows=rows(tp=2, cp=2, sp=True, micro_batch=4) + rows(tp=2, cp=2, sp=False, micro_batch=4),
    )
    document["costs"]["p2p"]["intra"] = {"alpha_s": 0, "beta_s_per_byte": 1.0}
    degrees = {"tp": 2, "cp": 2, "pp": 2, "micro_batch": 4}
    assert evaluated(document, **degrees, sequence_parallel=True).stages.forward_s == (2.0 + 64 * 4 / 4, 2.0)
    assert evaluated(document, **degrees, sequence_parallel=False).stages.forward_s == (2.0 + 64 * 4 / 2, 2.0)


def test_the_update_is_divided_from_the_first_stage_on_and_fixed_time_is_added() -> None:
    document = x(costs__optimizer_s_per_param=1e-9, costs__fixed_s=0.5)
    document["costs"]["collectives"]["intra"]["beta_s_per_byte"] = 0
    whole, divided = evaluated(document), evaluated(document, zero_stage=1)
    assert (whole.tail_s, divided.tail_s) == (4.0, 1.0)
    assert whole.step_time_s == 24.0 + 4.0 + 0.5


def test_experts_have_groups_of_their_own() -> None:
    experts = [row("moe", ep=2, etp=1, params=1e9, expert_params=2e9), row("embedding"), row("head")]
    model = {"layers": layers(4, "moe"), "num_heads": 8, "num_kv_heads": 8, "num_experts": 4}
    document = x(model=model, rows=experts, costs__optimizer_s_per_param=1e-9)
    found = evaluated(document, ep=2, zero_stage=3)
    # 4e9 parameters over 4 ranks and 8e9 over 2; two units to gather, one to scatter: 3e9 each.
    assert (found.sizes.dense_ranks, found.sizes.expert_ranks) == (4, 2)
    (held,) = ranks_of(document, ep=2, zero_stage=3)
    assert (held.weights, held.gradients, held.optimizer) == (5e9 * 2 + 2 * 3e9 * 2, 5e9 * 4 + 3e9 * 4, 5e9 * 12)
    assert found.tail_s == 5.0


def test_tied_ends_are_one_matrix_on_one_stage_and_two_on_more() -> None:
    ends = [row("embedding", params=1e9), row("head", params=1e9)]
    document = x(rows=[row("dense"), *ends], cluster__gpu_memory_bytes=200e9)
    tied = x(rows=[row("dense"), *ends], cluster__gpu_memory_bytes=200e9)
    tied["model"]["tied_embeddings"] = True
    assert ranks_of(document)[0].weights == 6e9 * 2
    assert ranks_of(tied)[0].weights == 5e9 * 2
    assert [rank.weights for rank in ranks_of(tied, pp=2)] == [3e9 * 2, 3e9 * 2]


def test_workspace_fragmentation_communicators_and_reserve_are_causes_of_their_own() -> None:
    table = [row("dense", workspace_bytes=2e9), row("embedding"), row("head", kept_bytes=5e8, workspace_bytes=7e9)]
    document = x(rows=table, cluster__reserve_bytes=1e9)
    document["costs"] |= {"fragmentation": 0.5, "communicator_bytes": 3e8}
    first, last = ranks_of(document, pp=2, recompute="full")
    # Full recomputation: 0.9e9 of a layer come back beside its workspace; the head's runs alone.
    assert (first.transient, last.transient) == (2.9e9, 7e9)
    assert (first.activations, last.activations) == (2 * 2e8, 2e8 + 5e8)
    assert first.fragmentation == pytest.approx(0.5 * (2 * 2e8 + 2.9e9), rel=1e-12)
    assert first.communicators == 2 * 3e8  # stages, and the data group of 2
    found = evaluated(document, pp=2, recompute="full")
    assert found.peak_memory_bytes == max(first.total, last.total)
    given = problem(document)
    tight = given.model_copy(
        update={"cluster": given.cluster.model_copy(update={"gpu_memory_bytes": found.peak_memory_bytes + 1e9})}
    )
    assert fits(tight, found)
    less = tight.model_copy(update={"cluster": tight.cluster.model_copy(update={"reserve_bytes": 1.1e9})})
    assert not fits(less, found)


def test_chunks_of_unequal_bytes_are_walked() -> None:
    # The last rank's head keeps 5e9: (rank 1 of 2, v 2, 4 micro-batches) F0 F0 F1 then B1: chunk 1 is held once beside
    # two of chunk 0, and a third F of chunk 0 comes when the head is gone.
    table = [row("dense"), row("embedding"), row("head", kept_bytes=5e9)]
    first, last = ranks_of(x(rows=table), pp=2, vpp=2)
    assert last.activations == 2 * 1e9 + 6e9
    # Rank 0: warm-up of 4, one more: 5 chunks of 1e9.
    assert first.activations == 5e9


def test_of_equal_times_the_smaller_comes_first_and_only_it_is_on_the_front() -> None:
    document = x(search={"pp": [1], "zero_stage": [0, 1]})
    document["costs"]["collectives"]["intra"]["beta_s_per_byte"] = 0
    found = enumerate_all(problem(document)).fitting
    assert [one.layout.zero_stage for one in found] == [1, 0]
    assert [one.step_time_s for one in found] == [24.0, 24.0]
    assert front(found) == found[:1]


def test_figures_within_the_tolerance_of_the_least_tie() -> None:
    base = evaluated(x())

    def like(step_time_s: float, peak: float, tp: int) -> Evaluated:
        layout = replace(base.layout, tp=tp)
        return replace(base, step_time_s=step_time_s, peak_memory_bytes=peak, layout=layout)

    near = like(10 * (1 + EQUAL / 2), 5.0, 2)
    # Beyond the tolerance of the first, though within that of the second.
    beyond = like(10 * (1 + EQUAL * 1.4), 1.0, 1)
    first = like(10.0, 5.0 * (1 + EQUAL / 2), 1)
    assert ranked([beyond, near, first]) == [first, near, beyond]


def test_one_gpu_sends_nothing() -> None:
    found = evaluated(x(cluster__num_gpus=1, cluster__gpus_per_node=1), zero_stage=1)
    assert (found.tail_s, found.pipeline_s) == (0.0, 8 * 12.0)


def test_a_step_that_takes_no_time_has_no_throughput() -> None:
    nothing = rows(forward_s=0, backward_s=0)
    found = evaluated(x(rows=nothing, cluster__num_gpus=1, cluster__gpus_per_node=1))
    assert (found.step_time_s, found.tokens_per_s_per_gpu) == (0.0, 0.0)


def test_ranks_that_work_as_long_may_hide_less_of_the_tail() -> None:
    # Both ranks work 6.5 s, but a hop goes with what is sent on: 2.5 + 4 s on rank 0, 2 + 4.5 s on rank 1.
    # A scatter of 1/2 * 2e9 * 2 B * 1e-9 = 2 s hides behind either backward; a gather of 4 s shows 1.5 s and 2 s.
    hop = {"alpha_s": 0.5, "beta_s_per_byte": 0}
    memory = {"cluster__gpu_memory_bytes": 200e9, "costs__p2p": {"intra": hop, "inter": hop}}
    document = overlapped(1.0, **memory, costs__comm_bytes={"param": 4, "grad": 2})
    found = evaluated(document, pp=2, zero_stage=1)
    assert (found.stages.forward_s, found.stages.backward_s) == ((2.5, 2.0), (4.0, 4.5))
    assert found.tail_s == 2.0
