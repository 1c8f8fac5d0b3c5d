"""Copies by load, and their placement: the page's goldens, and everything small against trying all placements."""

from __future__ import annotations

import numpy as np
import pytest
from janus_experts_cases import largest, least_of_all, random_together, symmetric

from planner.papers.janus.experts.copies import place
from planner.papers.janus.experts.least import least_coactivation
from planner.papers.janus.experts.placement import coactivations, greedy
from planner.papers.janus.experts.replicas import replica_counts
from planner.papers.janus.experts.spectral import eigenvalue_bound
from planner.papers.janus.experts.statistics import Statistics, count, of_pairs, pairs_of
from planner.papers.janus.experts.swaps import Swaps, descent, search
from planner.papers.janus.formulation import solve_model
from solvers.report import Limits, Status

J11_LOAD = np.array([6.0, 9.0, 4.0, 8.0, 3.0])
J11_TOGETHER = symmetric(5, {(0, 1): 5, (1, 2): 5, (2, 3): 1, (2, 4): 2})


# --- copies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "instances", "slots", "copies"),
    [
        # J10: without the cap [4, 1, 1], and no placement would exist.
        ([100, 1, 1], 2, 3, [2, 2, 2]),
        ([9, 3, 1], 2, 2, [2, 1, 1]),
        ([1] * 5, 2, 3, [2, 1, 1, 1, 1]),
        # J11.
        ([6, 9, 4, 8, 3], 2, 3, [1, 2, 1, 1, 1]),
        # Nothing is asked: 2 x 3 slots are 1 more than experts, and the lowest id takes it.
        ([0] * 5, 2, 3, [2, 1, 1, 1, 1]),
        # Never above the instances: 0 takes 3 of them, then 1 does.
        ([0] * 4, 3, 3, [3, 3, 2, 1]),
        # One instance has room for no second copy; more slots than experts put all of them everywhere.
        ([5, 1], 1, 2, [1, 1]),
        ([5, 1], 3, 4, [3, 3]),
    ],
)
def test_spare_slots_go_to_the_largest_load_a_copy(
    load: list[float], instances: int, slots: int, copies: list[int]
) -> None:
    assert replica_counts(np.array(load, float), instances, slots).tolist() == copies


def test_copies_are_what_giving_slot_by_slot_gives() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        E, n = int(rng.integers(1, 12)), int(rng.integers(1, 6))
        slots = int(rng.integers(-(-E // n), E + 3))
        load = rng.integers(0, 6, E).astype(float)
        copies = [1] * E
        for _ in range(min(n * slots, n * E) - E):
            copies[max((e for e in range(E) if copies[e] < n), key=lambda e: (load[e] / copies[e], -e))] += 1
        assert replica_counts(load, n, slots).tolist() == copies


# --- statistics ---------------------------------------------------------------------------------------------------


def test_experts_and_pairs_are_counted_token_by_token() -> None:
    ids = np.array([[0, 1, 3], [0, 2, 3], [1, 2, 3]], np.int32)
    counted = count(ids, 5)
    assert counted.load.tolist() == [2, 2, 2, 3, 0]
    assert pairs_of(counted) == [(0, 1, 1.0), (0, 2, 1.0), (0, 3, 2.0), (1, 2, 1.0), (1, 3, 2.0), (2, 3, 2.0)]
    assert (counted.together == counted.together.T).all()


def test_pairs_written_out_and_read_are_the_same() -> None:
    together = random_together(np.random.default_rng(3), 9)
    written = pairs_of(Statistics(np.ones(9), together))
    assert (of_pairs((1.0,) * 9, tuple(written)).together == together).all()


# --- the page's placement -----------------------------------------------------------------------------------------


def test_golden_j11_greedy_gives_10_and_swaps_6() -> None:
    copies = replica_counts(J11_LOAD, 2, 3)
    table = greedy(J11_LOAD, J11_TOGETHER, copies, 3, 2)
    assert coactivations(table, J11_TOGETHER).max() == 10
    assert coactivations(descent(table, J11_TOGETHER), J11_TOGETHER).max() == 6
    assert least_of_all([1, 2, 1, 1, 1], 3, 2, J11_TOGETHER) == 6


def _valid(table: np.ndarray, copies: np.ndarray) -> bool:
    distinct = all(len(set(row)) == len(row) for row in table.tolist())
    return distinct and (np.bincount(table.ravel(), minlength=len(copies)) == copies).all()


def test_every_step_keeps_copies_apart_and_none_is_lost() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        E, n = int(rng.integers(2, 14)), int(rng.integers(2, 6))
        slots = int(rng.integers(-(-E // n), E))
        together, load = random_together(rng, E), rng.integers(0, 50, E).astype(float)
        copies = replica_counts(load, n, slots)
        table = greedy(load, together, copies, slots, n)
        assert _valid(table, copies)
        down = descent(table, together)
        assert _valid(down, copies)
        assert coactivations(down, together).max() <= coactivations(table, together).max() * (1 + 1e-12)
        walked = search(down, together, 2**16)
        assert _valid(walked, copies)
        assert coactivations(walked, together).max() <= coactivations(down, together).max() * (1 + 1e-12)


def test_an_exchange_frees_a_slot_where_every_open_instance_holds_the_expert() -> None:
    # 0 goes to the first instance, 1 to the second, 2 and 3 stay away from 1, and the first is full. 4 has two copies
    # and only the second instance has room: the first passes on 0, which adds nothing there, where 2 would add 5, 3 4.
    load = np.array([9.0, 8.0, 7.0, 6.0, 2.0])
    together = symmetric(5, {(1, 2): 5, (1, 3): 4})
    table = greedy(load, together, np.array([1, 1, 1, 1, 2]), 3, 2)
    assert [sorted(row) for row in table.tolist()] == [[2, 3, 4], [0, 1, 4]]
    assert coactivations(table, together).tolist() == [0.0, 0.0]


def test_what_a_swap_is_said_to_do_is_what_it_does() -> None:
    rng = np.random.default_rng(2)
    E, n, slots = 9, 3, 4
    together, load = random_together(rng, E), rng.random(E)
    table = greedy(load, together, replica_counts(load, n, slots), slots, n)
    mine, theirs = Swaps(table, together).after(1)
    for a in range(slots):
        for h in range(n):
            for b in range(slots):
                leaves, comes = table[1, a], table[h, b]
                if h == 1 or comes in table[1] or leaves in table[h]:
                    assert mine[a, h, b] == np.inf
                    continue
                swapped = table.copy()
                swapped[1, a], swapped[h, b] = comes, leaves
                after = coactivations(swapped, together)
                assert mine[a, h, b] == pytest.approx(after[1])
                assert theirs[a, h, b] == pytest.approx(after[h])
                state = Swaps(table, together)
                state.swap((1, a, h, b))
                assert state.totals == pytest.approx(after)


# --- the best placement -------------------------------------------------------------------------------------------


def test_search_model_and_bound_against_all_placements() -> None:
    rng = np.random.default_rng(5)
    best, total = 0, 0
    for E, n, slots in ((6, 2, 4), (6, 3, 2), (7, 3, 3), (5, 3, 3), (8, 2, 4)) * 3:
        together, load = random_together(rng, E), rng.integers(1, 50, E).astype(float)
        found = place(Statistics(load, together), slots, n, 2**20)
        exact = least_of_all(found.copies.tolist(), slots, n, together)
        assert found.largest == pytest.approx(largest(found.table.tolist(), together))
        assert found.least <= exact * (1 + 1e-9)
        assert eigenvalue_bound(found.copies, n, together) <= exact * (1 + 1e-9)
        # Section 12 asks for 5 % above the exact placement at most; the aim here is 2 %.
        assert exact * (1 - 1e-9) <= found.largest <= exact * 1.02
        best, total = best + (found.largest <= exact * (1 + 1e-9)), total + 1
        answer = solve_model(found.copies, slots, n, together, found.table, found.least, Limits())
        assert answer.table is not None
        assert answer.status is Status.OPTIMAL
        assert coactivations(answer.table, together).max() == pytest.approx(exact)
        # Fractional co-activations are rounded down to units, so that the bound is never above the least.
        assert exact * (1 - 1e-6) <= answer.bound <= exact * (1 + 1e-9)
    assert best >= total - 1


def test_the_model_finds_it_without_a_hint_too() -> None:
    copies = replica_counts(J11_LOAD, 2, 3)
    answer = solve_model(copies, 3, 2, J11_TOGETHER, None, 0.0, Limits())
    assert answer.table is not None
    assert (coactivations(answer.table, J11_TOGETHER).max(), answer.bound) == (6.0, 6.0)


def test_the_bound_is_the_least_where_all_pairs_weigh_the_same() -> None:
    # Four slots of experts that all pairs join once: 6 pairs on each instance, whatever is where.
    together = np.ones((8, 8)) - np.eye(8)
    assert least_coactivation(np.array([1] * 8), 4, 2, together) == 6.0
    # With 2 x 6 slots for 8 experts 4 have two copies: 15 pairs on each.
    assert least_coactivation(np.array([2] * 4 + [1] * 4), 6, 2, together) == 15.0


def test_eigenvalues_are_near_where_experts_are_chosen_by_popularity() -> None:
    # w = p p': u = p^2 makes W of rank one, so that what is lost is only how unevenly p can be spread over instances.
    popularity = np.arange(1.0, 33.0)
    together = np.outer(popularity, popularity)
    np.fill_diagonal(together, 0.0)
    found = place(Statistics(popularity, together), 10, 4, 2**20)
    bound = eigenvalue_bound(found.copies, 4, together)
    assert found.largest * 0.98 <= bound <= found.largest
    assert found.least < bound


def test_eigenvalues_of_few_or_too_many_experts() -> None:
    # Two experts, one on each of two instances: never together.
    assert eigenvalue_bound(np.array([1, 1]), 2, symmetric(2, {(0, 1): 7})) == 0.0
    assert eigenvalue_bound(np.array([2, 2]), 2, symmetric(2, {(0, 1): 7})) == 7.0
    assert eigenvalue_bound(np.ones(600, np.int64), 2, np.ones((600, 600))) == 0.0
    assert eigenvalue_bound(np.array([1, 1, 1, 1]), 2, np.zeros((4, 4))) == 0.0


def test_every_expert_is_everywhere_where_there_are_slots_for_all() -> None:
    found = place(Statistics(J11_LOAD, J11_TOGETHER), 7, 3, 2**20)
    assert found.copies.tolist() == [3] * 5
    assert found.table.tolist() == [[0, 1, 2, 3, 4]] * 3
    # 5 + 5 + 1 + 2 on each, and nothing else is possible.
    assert (found.largest, found.least) == (13.0, 13.0)


def test_without_coactivation_any_placement_is_at_0() -> None:
    found = place(Statistics(np.zeros(6), np.zeros((6, 6))), 3, 3, 2**20)
    assert _valid(found.table, found.copies)
    assert (found.largest, found.least) == (0.0, 0.0)


def test_one_instance_holds_all() -> None:
    assert place(Statistics(J11_LOAD, J11_TOGETHER), 5, 1, 2**20).table.tolist() == [[0, 1, 2, 3, 4]]


def test_the_same_statistics_give_the_same_placement() -> None:
    rng = np.random.default_rng(8)
    statistics = Statistics(rng.random(20), random_together(rng, 20))
    one, other = (place(statistics, 6, 4, 2**20).table.tolist() for _ in range(2))
    assert one == other
