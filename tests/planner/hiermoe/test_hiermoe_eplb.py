"""EPLB as an algorithm, and tables made legal."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hiermoe_cases import EPLB_LOADS, EPLB_TABLES, golden_7, problem_of
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.papers.hiermoe.balance import longest_first, packed, smart_moe
from planner.papers.hiermoe.exchange.tables import crowded_slots
from planner.papers.hiermoe.instance import compile_case
from planner.papers.hiermoe.replicas.eplb import copies, eplb
from planner.papers.hiermoe.replicas.eplb_tables import eplb_tables, legal
from planner.routing.counts_files import read_counts

loads_of = st.lists(st.integers(0, 50), min_size=8, max_size=8).map(lambda loads: np.array(loads, float))


def peak(loads: np.ndarray, table: np.ndarray, ranks: int) -> float:
    share = loads / np.bincount(table, minlength=len(loads))
    return float(share[table].reshape(ranks, -1).sum(axis=1).max())


def test_the_published_example_comes_out_slot_by_slot() -> None:
    # Page golden 7: the output of the public EPLB README, 16 slots, 4 groups, 2 nodes, 8 ranks.
    for loads, table in zip(EPLB_LOADS, EPLB_TABLES, strict=True):
        assert tuple(eplb(np.array(loads, float), 16, 4, 2, 8)) == table


def test_groups_that_nodes_do_not_divide_make_the_rule_global() -> None:
    loads = np.array(EPLB_LOADS[0], float)
    assert (eplb(loads, 16, 3, 2, 8) == eplb(loads, 16, 1, 1, 8)).all()


def test_without_redundant_slots_one_expert_a_rank_is_left_in_order() -> None:
    # One item per bin means identity.
    assert eplb(np.array([5.0, 1.0, 9.0, 2.0]), 4, 1, 1, 4).tolist() == [0, 1, 2, 3]


@given(loads=loads_of, more=st.integers(0, 3))
@settings(max_examples=50, deadline=None)
def test_copies_go_where_load_per_copy_is_largest(loads: np.ndarray, more: int) -> None:
    # The last copy went to an expert that had, without it, the largest load per copy.
    chosen = copies(loads, 8 + more)
    assert sorted(set(chosen.tolist())) == list(range(8))
    for number in range(8, 8 + more):
        per_copy = loads / np.bincount(chosen[:number], minlength=8)
        assert per_copy[chosen[number]] == per_copy.max()


@given(loads=loads_of)
@settings(max_examples=50, deadline=None)
def test_every_bin_takes_the_same_number_and_no_free_bin_was_lighter(loads: np.ndarray) -> None:
    into = packed(loads, 4)
    assert np.bincount(into).tolist() == [2, 2, 2, 2]
    held, count = np.zeros(4), np.zeros(4)
    for item in np.argsort(-loads, kind="stable"):
        assert held[into[item]] == held[count < 2].min()
        held[into[item]] += loads[item]
        count[into[item]] += 1


@given(loads=loads_of, order=st.permutations(range(8)))
@settings(max_examples=50, deadline=None)
def test_smart_moe_moves_only_for_a_lower_largest_load(loads: np.ndarray, order: list[int]) -> None:
    table = np.array(order)
    found = smart_moe(loads, table, 4)
    assert sorted(found.tolist()) == list(range(8))
    assert peak(loads, found, 4) < peak(loads, table, 4) or (found == table).all()


def test_smart_moe_leaves_an_expert_where_it_ties_for_least() -> None:
    # Heaviest first: 3 stays on rank 1 (both empty), 2 goes to rank 0, 1 stays on rank 0 (2 against 3), 0 to rank 1.
    assert smart_moe(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 1, 2, 3]), 2).tolist() == [1, 2, 0, 3]
    # Already even: nothing moves, though longest first starts with expert 2 on rank 0.
    loads, table = np.array([0.0, 1.0, 3.0, 2.0]), np.array([1, 3, 0, 2])
    assert longest_first(loads, 2).tolist() == [0, 2, 1, 3]
    assert smart_moe(loads, table, 2).tolist() == [1, 3, 0, 2]


def test_a_second_copy_on_a_rank_goes_to_the_expert_with_most_load_per_copy() -> None:
    # The README's first table with both copies of expert 5 on rank 0.
    case = compile_case(problem_of(golden_7()))
    table = np.array([5, 5, 6, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1])
    fixed = legal(case, case.layers[0], table)
    assert not crowded_slots(fixed, 8)
    # Most load per copy of what the rank does not hold: 10 with 183 / 2, before 0 with 90.
    assert fixed[:2].tolist() == [5, 10]
    assert (fixed[2:] == np.sort(table[2:].reshape(7, 2), axis=1).ravel()).all()


def test_tables_of_a_layer_are_the_hierarchical_and_the_global_rule() -> None:
    document = golden_7() | {"search": {"eplb_groups": 4}}
    case = compile_case(problem_of(document))
    for layer, loads, table in zip(case.layers, EPLB_LOADS, EPLB_TABLES, strict=True):
        found = eplb_tables(case, layer)
        assert tuple(found["hierarchical"]) == table
        assert (found["global"] == eplb(np.array(loads, float), 16, 1, 1, 8)).all()


@pytest.mark.skipif("PLAN_REAL_DATA" not in os.environ, reason="PLAN_REAL_DATA is not set")
def test_real_loads_are_as_uneven_as_the_page_says() -> None:
    # Page golden 8: OLMoE, C4, layer 7: contiguous 1.0864, longest first 1.0206 of the mean on 8 ranks.
    path = Path(os.environ["PLAN_REAL_DATA"]) / "moe_routing" / "olmoe_expert_counts_c4.json"
    loads = read_counts(path, 64, "here")[1]
    mean = loads.sum() / 8
    assert peak(loads, np.arange(64), 8) / mean == pytest.approx(1.0864, abs=5e-5)
    assert peak(loads, longest_first(loads, 8), 8) / mean == pytest.approx(1.0206, abs=5e-5)
