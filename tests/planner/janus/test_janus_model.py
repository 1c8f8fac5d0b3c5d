"""Seconds and bytes of pools are those of the page's equations."""

from __future__ import annotations

import math

import janus_cases as cases
import numpy as np
import pytest

from planner.errors import BadInputError
from planner.papers.janus import model
from planner.papers.janus.activated import closed_form
from planner.papers.janus.costs import TwoPhase
from planner.papers.janus.model import Option
from planner.papers.janus.options import operating_point, options


def option_of(document: cases.Document) -> Option:
    return options(cases.problem_of(document))[0]


def test_the_parts_of_a_token_are_those_worked_out_by_hand() -> None:
    # J, pools (5, 6), 20 requests: b = 4, a request takes 1e-5 + 1000·2e-8 = 3e-5 s, so attention 1.2e-4 < 2e-4 = c_a.
    # Between 16 and 64 requests the row of 6 instances rises from 3.2 to 3.6: a_max = 3.2 + 0.4·4/48.
    # q = min(5, 4) = 4 share a node, V = 4·4·8192 B = 131072 B, D = ceil(6/4) = 2 nodes. Network 5e-5 + 131072e-10,
    # gather 1e-5 + 131072e-11, multicast and reduce 2e-5 + 131072e-11: the second way, 2e-5 s of multicast is less.
    pair = model.pairs_of(option_of(cases.j()), 5, 6)
    batch = np.array([20.0])
    network, gather, other = 5e-5 + 131072e-10, 1e-5 + 131072e-11, 2e-5 + 131072e-11
    comm_s, case = model.comm_s(pair, batch)
    assert model.attention_s(pair, batch)[0] == 2e-4
    assert model.activated(pair, batch)[0] == pytest.approx(3.2 + 0.4 / 12)
    assert model.moe_s(pair, batch)[0] == pytest.approx(5e-4 * (3.2 + 0.4 / 12) + 1e-4)
    assert comm_s[0] == pytest.approx(gather + (network + other) + other + network)
    assert case[0] == 2
    assert model.tpot_s(pair, batch)[0] == pytest.approx(
        10 * (2e-4 + 5e-4 * (3.2 + 0.4 / 12) + 1e-4 + gather + 2 * network + 2 * other)
    )
    # Four requests on each of five instances: 1e10 + 4·1000·1e6 bytes.
    assert model.attention_bytes(pair, batch)[0] == 1.4e10


def test_one_source_gathers_nothing_and_one_node_is_sent_to_directly() -> None:
    # (1, 4): q = 1, D = 1, V = 20·8192 B.
    pair = model.pairs_of(option_of(cases.j()), 1, 4)
    comm_s, case = model.comm_s(pair, np.array([20.0]))
    assert comm_s[0] == pytest.approx(2 * (5e-5 + 163840e-10) + 2e-5 + 163840e-11)
    assert case[0] == 1


def test_ways_that_take_the_same_are_sent_directly() -> None:
    # Two nodes, multicast as the network: both ways take two networks.
    same = {"alpha_s": 5e-5, "beta_s_per_byte": 1e-10}
    pair = model.pairs_of(option_of(cases.j(comm={"multicast": same})), 1, 6)
    assert model.comm_s(pair, np.array([3.0]))[1][0] == 1


def test_the_last_part_of_a_request_is_a_whole_one_but_for_rounding() -> None:
    pairs = model.pairs_of(option_of(cases.j()), np.array([2, 2, 2]), 6)
    # 2, 2 + 5e-10 and 2.001 requests on an instance.
    used = model.attention_bytes(pairs, np.array([4.0, 4.0 + 1e-9, 4.002]))
    assert used.tolist() == [1.2e10, 1.2e10, 1.3e10]


def test_bytes_by_cause_are_summed() -> None:
    document = cases.j(memory={"attention_fixed_bytes": {"weights": 4e9, "reserve": 6e9}})
    assert cases.scaled(document).attention_memory_bytes == cases.scaled(cases.j()).attention_memory_bytes == 2.3e10


def test_closed_forms_are_those_of_the_page() -> None:
    # The page's case: E 160, K 6, C 27, 64 tokens. q = 1 - (154/160)^64 = 0.9133; 16 instances: 9.133 +
    # sqrt(2·9.133·ln 16) + 1 = 17.25; 12: 20.96. The printed one counts 27 q and is capped at C = 27.
    grid, sizes = np.array([1.0, 64.0]), np.array([12, 16])
    assert closed_form("balanced_bound", grid, sizes, 160, 6, 27)[:, 1] == pytest.approx([20.96, 17.25], abs=5e-3)
    assert closed_form("printed_bound", grid, sizes, 160, 6, 27)[:, 1].tolist() == [27, 27]
    # One token activates K at most.
    assert closed_form("printed_bound", grid, sizes, 160, 2, 27)[:, 0].tolist() == [2, 2]


def test_the_binomial_bound_is_nearer_to_simulated_routing_and_never_falls_with_the_batch() -> None:
    # As above; the page simulates 10.0 with 16 instances and 13.4 with 12. With 64 tokens one copy of each expert is
    # ceil(160/16) = 10 and ceil(160/12) = 14 an instance. With 8 tokens q = 1 - (154/160)^8 = 0.2634: 16 instances
    # 2.634 + sqrt(2·2.634·0.7366·ln 16) + 1 = 6.91, 12 instances 3.513 + sqrt(2·3.513·0.7366·ln 12) + 1 = 8.10.
    grid, sizes = np.array([8.0, 64.0]), np.array([12, 16])
    twelve, sixteen = closed_form("binomial_bound", grid, sizes, 160, 6, 27).tolist()
    assert twelve == [pytest.approx(8.10, abs=5e-3), 14]
    assert sixteen == [pytest.approx(6.91, abs=5e-3), 10]
    row = closed_form("binomial_bound", np.arange(1.0, 2000.0), sizes, 160, 6, 1000)
    assert (np.diff(row, axis=1) >= 0).all()
    assert (row <= closed_form("balanced_bound", np.arange(1.0, 2000.0), sizes, 160, 6, 1000)).all()


@pytest.mark.parametrize("E", [7, 100, 160])
def test_more_slots_leave_the_binomial_bound_as_it_is_and_raise_the_balanced_one(E: int) -> None:
    grid, sizes = np.array([1.0, 8.0, 64.0, 4096.0]), np.arange(5, 40)
    few, many = -(-E // 5), 2 * E
    assert (
        closed_form("binomial_bound", grid, sizes, E, 3, few) == closed_form("binomial_bound", grid, sizes, E, 3, many)
    ).all()
    # What makes a plan with more memory larger.
    assert (
        closed_form("balanced_bound", grid, sizes, E, 3, few) < closed_form("balanced_bound", grid, sizes, E, 3, many)
    ).any()


def test_between_nodes_a_payload_takes_the_links_that_have_an_instance_at_both_ends() -> None:
    # J with four links of a node of four GPUs. 20 requests of 8192 B. (1, 6): one source, so one link, V = 163840 B.
    # (2, 6): V = 10·2·8192 = 163840 B over two. (8, 6): q = 4, V = 2.5·4·8192 = 81920 B over four. (8, 2): two
    # receivers, so two links.
    document = cases.j(comm={"links_per_node": 4}, num_experts=10, a_max={"expert_instances": [2, 6, 8]})
    option = option_of(document)
    pairs = model.pairs_of(option, np.array([1, 2, 8, 8]), np.array([6, 6, 6, 2]))
    assert isinstance(option.comm, TwoPhase)
    payload = np.array([163840.0, 163840.0, 81920.0, 81920.0])
    network = 5e-5 + payload / [1, 2, 4, 2] * 1e-10
    gather = np.array([0, 1, 1, 1]) * (1e-5 + payload * 1e-11)
    other = 2e-5 + payload * 1e-11
    # Two nodes of experts are reached through one of them, which spreads; one node directly.
    there = network + np.array([1, 1, 1, 0]) * other
    comm_s, case = model.comm_s(pairs, np.full(4, 20.0))
    assert comm_s.tolist() == pytest.approx((gather + there + other + network).tolist())
    assert case.tolist() == [2, 2, 2, 1]


def test_more_attention_instances_never_make_the_exchange_slower_from_two_on() -> None:
    for links in (1, 3, 4, 8):
        option = option_of(cases.j(comm={"links_per_node": links, "network": {"alpha_s": 0, "beta_s_per_byte": 1e-6}}))
        for n_e in (4, 5, 8):
            pairs = model.pairs_of(option, np.arange(2, 40), n_e)
            assert (np.diff(model.comm_s(pairs, np.full(38, 50.0))[0]) <= 1e-18).all()


def test_one_instance_has_no_deviation_and_all_experts_of_a_token_are_hit() -> None:
    # ln 1 = 0: a = min(C, K B, mean + 1); with K = E every expert is hit, mean = 5. With K = 1 three tokens are held
    # to three experts, and ten activate 5 (1 - 0.8^10) + 1.
    grid, one = np.array([1.0, 3.0, 10.0]), np.array([1])
    assert closed_form("balanced_bound", grid, one, 5, 5, 9).tolist() == [[5, 6, 6]]
    mean = 5 * (1 - 0.8**10)
    assert closed_form("balanced_bound", grid, one, 5, 1, 9)[0].tolist() == pytest.approx([1, 3, mean + 1])


def test_a_row_of_a_table_holds_up_to_the_next() -> None:
    pairs = model.pairs_of(option_of(cases.j()), 1, np.arange(4, 11))
    # At 16 requests the rows of 4, 6 and 8 instances have 4.5, 3.2 and 2.4.
    assert model.activated(pairs, np.full(7, 16.0)).tolist() == [4.5, 4.5, 3.2, 3.2, 2.4, 2.4, 2.4]


def test_no_point_stands_for_pools_that_no_row_holds_for() -> None:
    option = option_of(cases.j())
    assert operating_point(option, 1, 3, 100.0) is None
    assert operating_point(option, 0, 4, 100.0) is None


def test_the_seconds_of_a_layer_make_up_the_token() -> None:
    point = operating_point(option_of(cases.j()), 3, 5, 900.0)
    assert point is not None
    assert 10 * math.fsum([point.attention_s, point.moe_s, point.comm_s]) == pytest.approx(point.tpot_s)
    assert point.batch == pytest.approx(900.0 * point.tpot_s)


def test_a_token_that_takes_no_time_is_refused() -> None:
    document = cases.j(
        attention={"floor_s": 0, "per_request_s": 0, "per_cached_token_s": 0},
        moe={"per_expert_s": 0, "base_s": 0},
        comm={"kind": "constant", "time_s": 0},
    )
    with pytest.raises(BadInputError, match="takes no time") as caught:
        options(cases.problem_of(document))
    assert caught.value.where == "attention"


def test_a_search_too_large_for_memory_is_refused() -> None:
    # 65536 instances on 65 points are more than 2^22.
    document = cases.j(
        a_max={"kind": "balanced_bound", "batch_grid": list(range(1, 66))},
        limits={"max_expert_instances": 65536, "max_total_instances": 131072},
    )
    with pytest.raises(BadInputError) as caught:
        options(cases.problem_of(document))
    assert (caught.value.code, caught.value.where) == ("too_large", "limits.max_expert_instances")


def test_a_device_overrides_what_it_states_and_nothing_else() -> None:
    document = cases.j(
        devices=[
            {"id": "b", "moe": {"per_expert_s": 1e-3, "base_s": 0}, "slots_per_instance": 8},
            {"id": "a", "memory": {"capacity_bytes": 4e10, "attention_fixed_bytes": 0, "kv_bytes_per_token": 0}},
        ]
    )
    document["a_max"] = {"kind": "balanced_bound", "batch_grid": [1, 64]}
    a, b = options(cases.problem_of(document))
    assert (a.device, b.device) == ("a", "b")
    assert (a.slots, b.slots, a.fewest_experts, b.fewest_experts) == (5, 8, 4, 2)
    assert (a.moe.per_expert_s, b.moe.per_expert_s) == (5e-4, 1e-3)
    assert (a.memory_place, b.memory_place) == ("devices.a.memory", "memory")
    assert a.memory is not None and b.memory is not None
    assert (a.memory.capacity_bytes, b.memory.capacity_bytes) == (4e10, 8e10)
