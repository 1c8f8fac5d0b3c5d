"""What a plan warns of, and when it does not."""

from __future__ import annotations

from typing import Any

from layout_cases import G1, G3, Document, layers, problem, row, x

from planner.papers.layout.cautions import warnings
from planner.papers.layout.engines import solve
from solvers.report import Limits


def warned(document: Document) -> dict[str, str]:
    """Messages by code, in order."""
    given = problem(document)
    found = warnings(given, solve(given, None, Limits())[0])
    assert len({one.code for one in found}) == len(found)
    return {one.code: one.message for one in found}


def changed(document: Document, **changes: Any) -> Document:
    """With other parts of the top level."""
    return document | {name: document.get(name, {}) | value for name, value in changes.items()}


def costs(document: Document, **changes: Any) -> Document:
    return changed(document, costs=changes)


def test_a_plan_near_the_capacity_says_how_near_and_that_nothing_is_reserved() -> None:
    """G1 holds 76 GB."""
    said = warned(G1)["near_capacity"]
    assert said.startswith("the fullest rank holds 76 GB, 95.00 % of what a GPU has free, of which nothing is reserved")
    assert (
        "reserved" not in warned(changed(G1, cluster={"gpu_memory_bytes": 82e9, "reserve_bytes": 1e9}))["near_capacity"]
    )
    assert "near_capacity" not in warned(changed(G1, cluster={"gpu_memory_bytes": 90e9}))  # 84 %


def test_fewer_micro_batches_than_stages_leave_stages_idle() -> None:
    """2 micro-batches in 4 stages: 2 of 5 slots are work."""
    few = changed(G1, batch={"global_batch_size": 2}, search={"pp": [4]})
    assert warned(few)["few_micro_batches"].startswith(
        "2 micro-batches for 4 pipeline stages: equal stages are busy for 40"
    )
    assert "few_micro_batches" not in warned(changed(G1, search={"pp": [4]}))


def test_equal_stages_with_a_heavy_head_ask_for_other_partitions() -> None:
    """G3 in equal stages: 12 s and 18 s a micro-batch, so the last is 20 % above the mean."""
    even = changed(G3, search={"partitions": ["even"]})
    assert warned(even)["uneven_stages"].startswith("rank 1 works 20.00 % longer than the mean")
    assert "uneven_stages" not in warned(G3)


def test_megatron_interleaves_two_stages_only_where_messages_overlap() -> None:
    document = changed(G1, search={"pp": [2], "vpp": [2]})
    assert "interleave_two_stages" not in warned(document)
    assert (
        "--no-overlap-p2p-communication" in warned(document | {"launcher_rules": "megatron"})["interleave_two_stages"]
    )


def test_overlap_stated_at_either_end_is_named_where_something_hangs_on_it() -> None:
    """The all-reduce of G1 is 2.4 s of 26.4."""
    assert "data-parallel collectives, 9.09 % of the step" in warned(G1)["overlap_stated_zero"]
    whole = warned(costs(G1, overlap={"dp": 1, "p2p": 0}))
    assert "overlap_stated_zero" not in whole
    assert "overlap.dp = 1" in whole["overlap_stated_whole"]
    between = warned(costs(G1, overlap={"dp": 0.5, "p2p": 0.5}))
    assert not {"overlap_stated_zero", "overlap_stated_whole"} & set(between)


def test_hops_that_hide_behind_nothing_are_named_too() -> None:
    hops = costs(changed(G1, search={"pp": [4]}), boundary_bytes_per_sample=1e9)
    hops = costs(
        hops, p2p={"intra": {"alpha_s": 0.5, "beta_s_per_byte": 0}, "inter": {"alpha_s": 0, "beta_s_per_byte": 0}}
    )
    assert "pipeline hops" in warned(hops)["overlap_stated_zero"]
    assert "overlap.p2p = 1" in warned(costs(hops, overlap={"dp": 0, "p2p": 1}))["overlap_stated_whole"]


def test_a_last_node_that_is_not_full_is_named() -> None:
    odd = x(cluster={"num_gpus": 6, "gpus_per_node": 4, "gpu_memory_bytes": 90e9, "reserve_bytes": 0})
    odd = changed(odd, batch={"global_batch_size": 6}, search={"pp": [1]})
    assert warned(odd)["partial_node"].startswith("6 GPUs are no whole number of nodes of 4: the last node has 2")
    assert "partial_node" not in warned(G1)
    slow = {"alpha_s": 0, "beta_s_per_byte": 1e-9}
    ports = costs(odd, collectives={"intra": slow, "inter": slow | {"beta_of": "gpu"}})
    assert warned(ports)["partial_node"].endswith("has 2, and only data-parallel rings are priced by the ports it has")


def test_a_decision_at_the_end_of_its_list_is_named_where_more_would_be_allowed() -> None:
    """Micro-batches of 2 that take 1.8 times as long win; 4 would divide the batch of 16 as well, and 8 is no use."""
    both = {"micro_batch": [1, 2], "pp": [1]}
    rows = [row(kind, micro_batch=b) for kind in ("embedding", "head") for b in (1, 2)]
    rows += [row("dense"), row("dense", micro_batch=2, forward_s=1.8, backward_s=3.6)]
    document = changed(x(rows=rows, batch__global_batch_size=16), search=both)
    assert warned(document)["search_edge"].startswith("micro_batch 2: ")
    assert "search_edge" not in warned(changed(document, batch={"global_batch_size": 8}))
    assert "search_edge" not in warned(changed(document, search=both | {"micro_batch": [2]}))


def test_layouts_that_a_model_cannot_tell_apart_are_counted() -> None:
    """zero 0 takes 26.4 s and zero 1 25.8 s: 24 s of layers, 1.2 s to scatter and 0.6 s to gather."""
    document = changed(G1, search={"pp": [1], "zero_stage": [0, 1]})
    assert warned(document)["close_race"].startswith("at least 1 other layout is within 5.00 % of the step")
    assert "close_race" not in warned(G1)  # the next one takes 17 % longer


def test_what_the_prices_say_of_themselves_stands_between_memory_and_the_rest() -> None:
    said = warned(G1 | {"cautions": {"uncalibrated": "as measured one by one"}})
    assert list(said) == ["near_capacity", "uncalibrated", "overlap_stated_zero"]
    assert said["uncalibrated"] == "as measured one by one"
    unmeasured = warned(G1 | {"cautions": {"overlap_unmeasured": "no overlap was stated"}})
    assert "overlap_stated_zero" not in unmeasured


def test_a_plan_with_nothing_to_say_says_nothing() -> None:
    roomy = x(cluster__gpu_memory_bytes=200e9, search={"pp": [1]}, model__layers=layers(4))
    assert warned(costs(roomy, overlap={"dp": 0.5, "p2p": 0.5})) == {}
