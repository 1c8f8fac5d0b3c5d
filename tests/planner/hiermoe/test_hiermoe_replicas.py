"""Placement with redundant slots: the copy rule followed change by change, the search, the front."""

from __future__ import annotations

import numpy as np
import pytest
from hiermoe_cases import GOLDEN_5_VALUES, copied, golden_5, problem_of, random_document, seeded
from hiermoe_oracle import all_tables, best_s, objective_s

from planner.papers.hiermoe.check import check
from planner.papers.hiermoe.engines import solve
from planner.papers.hiermoe.exchange.copies import serving_slots
from planner.papers.hiermoe.exchange.hops import hops_of
from planner.papers.hiermoe.exchange.nearest import Nearest
from planner.papers.hiermoe.exchange.tables import changed, crowded_slots, moved_count
from planner.papers.hiermoe.exchange.time import counts, rank_loads
from planner.papers.hiermoe.instance import Case, Loads, Table, Tokens, compile_case
from planner.papers.hiermoe.replicas.eplb_tables import eplb_tables, legal
from planner.papers.hiermoe.replicas.front import MOST, Front
from planner.papers.hiermoe.replicas.place import objective_of, place_replicas, point_of
from planner.papers.hiermoe.replicas.state import LoadState, State, TokenState
from solvers.report import Limits


def random_table(case: Case, source: np.random.Generator) -> Table:
    table = np.concatenate([np.arange(case.E), source.integers(case.E, size=case.P - case.E)])
    return source.permutation(table)


def state_of(case: Case, d: int, table: Table) -> State:
    routed = case.layers[0].routed
    if isinstance(routed, Tokens):
        return TokenState(case, routed, hops_of(case, d), table)
    assert isinstance(routed, Loads)
    return LoadState(case, routed, hops_of(case, d), table)


def assert_counted(case: Case, d: int, state: State, table: Table) -> None:
    layer = case.layers[0]
    for hop, count in zip(hops_of(case, d), state.counts, strict=True):
        full = counts(case, layer, table, hop)
        np.testing.assert_allclose(np.broadcast_to(count, full.shape), full, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(state.load, rank_loads(case, layer, table), rtol=1e-12)


def redundant_case(seed: int, kinds: tuple[str, ...] = ("mask", "loads"), **changes: object) -> Case:
    source = seeded(seed)
    document = random_document(source, gpus=4, experts_per_gpu=2, kinds=kinds, redundant=True)
    document |= changes
    document["redundant_slots"] = max(document["redundant_slots"], 4)
    return compile_case(problem_of(document))


@pytest.mark.parametrize("seed", range(8))
def test_a_trial_counts_what_counting_everything_does(seed: int) -> None:
    case, source = redundant_case(seed, forbid_same_rank_replicas=False), seeded(seed)
    table = random_table(case, source)
    for d in case.dimensions:
        now, state = table, state_of(case, d, table)
        assert_counted(case, d, state, now)
        for _ in range(5):
            p, q = source.choice(case.P, 2, replace=False).tolist()
            swap = ((p, int(now[q])), (q, int(now[p])))
            several = np.bincount(now, minlength=case.E)[now[p]] > 1
            changes = ((p, int(source.integers(case.E))),) if several and source.random() < 0.6 else swap
            trial = state.trial(changes)
            assert_counted(case, d, state, now)
            state.accept(trial)
            now = changed(now, changes)
            assert (state.table == now).all()
            assert_counted(case, d, state, now)


@pytest.mark.parametrize("seed", range(6))
def test_slots_that_serve_are_on_the_ranks_that_serve(seed: int) -> None:
    case = redundant_case(seed, forbid_same_rank_replicas=False)
    table = random_table(case, seeded(seed))
    near, served = Nearest(case), serving_slots(case, table)
    assert all((near.serving(np.flatnonzero(table == expert)) == served[:, expert]).all() for expert in range(case.E))


def test_the_golden_case_reaches_its_bound() -> None:
    # Page golden 5: [0,2 | 0,1] gives 4 + 3 = 7; all six tables give 7, 8, 8, 9, 11, 11.
    document = golden_5()
    case = compile_case(problem_of(document))
    found = place_replicas(case, case.layers[0])
    assert (found.chosen.table.tolist(), objective_of(case, found.chosen)) == ([0, 2, 0, 1], 7.0)
    assert (found.chosen.peak_load, found.chosen.a2a_s) == (3.0, 4.0)
    reached = sorted(
        objective_of(case, point_of(case, case.layers[0], np.array(table), 1)) for table in all_tables(2, 3, 4)
    )
    assert reached == [7, 8, 8, 9, 11, 11]
    for table, value in GOLDEN_5_VALUES.items():
        assert objective_s(document, document["layers"][0], table, 1) == value


@pytest.mark.parametrize("seed", range(5))
def test_tiny_cases_reach_the_best_of_all_tables(seed: int) -> None:
    source = seeded(seed)
    document = random_document(source, gpus=2, experts_per_gpu=2, kappa=True) | {"redundant_slots": 2}
    problem = problem_of(document)
    case = compile_case(problem)
    found = place_replicas(case, case.layers[0])
    layer = document["layers"][0]
    best = min(best_s(document, layer, table) for table in all_tables(2, 4, 6))
    assert objective_of(case, found.chosen) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_no_start_and_no_eplb_table_made_legal_is_better(seed: int) -> None:
    case = redundant_case(seed)
    layer = case.layers[0]
    found = place_replicas(case, layer)
    assert not crowded_slots(found.chosen.table, case.G)
    for table in [*eplb_tables(case, layer).values(), layer.current]:
        for d in case.dimensions:
            start = point_of(case, layer, legal(case, layer, table), d)
            assert objective_of(case, found.chosen) <= objective_of(case, start) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_where_load_costs_nothing_it_is_not_spent_beyond_eplb(seed: int) -> None:
    # kappa 0: no baseline is faster, and the peak load is at most that of the fastest where any such point was met.
    source = seeded(seed)
    document = random_document(source, gpus=4, experts_per_gpu=2, kappa=False) | {"redundant_slots": 4}
    case = compile_case(problem_of(document))
    layer = case.layers[0]
    found = place_replicas(case, layer)
    rivals = [point_of(case, layer, table, d) for table in eplb_tables(case, layer).values() for d in case.dimensions]
    least = min(rival.peak_load for rival in rivals)
    fastest = min(rival.a2a_s for rival in rivals)
    within = [point for point in found.front if point.peak_load <= least and point.a2a_s <= fastest]
    if within:
        assert found.chosen.peak_load <= least
        assert found.chosen.a2a_s <= fastest


def test_the_front_keeps_what_nothing_beats_and_the_first_of_equals() -> None:
    front, one, other = Front(), np.array([0, 1]), np.array([1, 0])
    front.meet(3.0, 2.0, 1, one)
    front.meet(3.0, 2.0, 1, other)
    front.meet(4.0, 2.0, 1, other)
    front.meet(4.0, 1.0, 1, one, ((0, 1),))
    front.meet(2.0, 5.0, 2, other)
    assert [(p.peak_load, p.a2a_s) for p in front.thinned(front.points[0])] == [(2.0, 5.0), (3.0, 2.0), (4.0, 1.0)]
    assert front.points[0].table.tolist() == [0, 1]
    assert front.points[1].table.tolist() == [1, 1]
    front.meet(2.0, 1.0, 1, one)
    assert [(p.peak_load, p.a2a_s) for p in front.points] == [(2.0, 1.0)]


def test_a_long_front_is_thinned_with_its_ends_and_the_chosen_point() -> None:
    front = Front()
    for load in range(40):
        front.meet(float(load), float(40 - load), 1, np.array([0]))
    chosen = front.points[17]
    thinned = front.thinned(chosen)
    assert len(thinned) <= MOST
    assert chosen in thinned
    assert (thinned[0].peak_load, thinned[-1].peak_load) == (0.0, 39.0)


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_with_copies_passes_its_check_with_every_point_of_its_front(seed: int) -> None:
    source = seeded(seed)
    document = random_document(source, gpus=4, experts_per_gpu=2, kinds=("mask", "loads", "uniform_expected"))
    problem = problem_of(document | {"redundant_slots": 4})
    solution, _ = solve(problem, None, Limits())
    assert check(problem, solution) == []
    for layer in solution.layers:
        assert layer.front
        assert layer.physical_to_logical in [point.physical_to_logical for point in layer.front]


def test_a_limit_on_rank_load_is_kept_with_copies() -> None:
    document = golden_5()
    limited = copied(document) | {"search": {"max_load_ratio": 1.0}}
    limited["costs"]["compute_s_per_assignment"] = 0.0
    case = compile_case(problem_of(limited))
    layer = case.layers[0]
    # 6 assignments on 2 ranks: 3 each, which [0,2 | 0,1] has.
    found = place_replicas(case, layer)
    assert found.chosen.peak_load == 3.0


def test_a_budget_of_moves_is_kept_with_copies() -> None:
    source = seeded(3)
    document = random_document(source, gpus=2, experts_per_gpu=3, kappa=True) | {"redundant_slots": 2}
    reached = []
    for budget in (0, 1, 2, 8):
        problem = problem_of(document | {"search": {"max_moved_experts": budget, "exact": "never"}})
        solution, _ = solve(problem, None, Limits())
        assert check(problem, solution) == []
        (layer,) = compile_case(problem).layers
        table = np.array(solution.layers[0].physical_to_logical)
        assert moved_count(layer.current, table, 2) == solution.layers[0].moved_experts <= budget
        reached.append(solution.objective_s)
    assert reached == sorted(reached, reverse=True)
    assert reached[-1] < reached[0]
