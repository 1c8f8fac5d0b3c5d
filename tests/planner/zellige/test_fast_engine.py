"""The fast engine: cut, anchors, fillers, balance, and what it promises whatever the batch."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import zellige_cases as cases
import zellige_golden as golden
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import best_by_enumeration

from planner.errors import InfeasibleError
from planner.papers.zellige.baselines import cheap_placements
from planner.papers.zellige.bounds import quick_bounds
from planner.papers.zellige.check import check
from planner.papers.zellige.engines import METHODS, fast, is_small, solve
from planner.papers.zellige.fast import log_price_cut, solve_fast
from planner.papers.zellige.fillers import Rule, pack_fillers, spread
from planner.papers.zellige.instance import Instance, Mode, compile_instance, loads
from planner.papers.zellige.rank_ledger import Ledger
from planner.papers.zellige.rank_sets import aligned_blocks
from solvers.report import Limits, Status


def ideal(num_ranks: int, works: dict[str, tuple[int, float]], node: int | None = None) -> Instance:
    """Sequences whose work splits for free over 1, 2 or 4 ranks; memory slack."""
    groups = {
        name: (count, {"whole": (w, 1.0), "q2": (w / 2, 1.0), "q4": (w / 4, 1.0)}) for name, (count, w) in works.items()
    }
    return compile_instance(cases.problem(num_ranks, 1e9, groups, node=node))


# The cut, page 4.1.


def test_the_cut_of_golden_case_z10_is_after_the_fourth_bucket() -> None:
    prices = (0.4, 0.9, 1.6, 3.8, 24, 60, 160)
    groups = {f"g{i}": (1, {"whole": (price, 0.0)}) for i, price in enumerate(prices)}
    assert log_price_cut(compile_instance(cases.problem(1, 1, groups))) == 4


def test_one_bucket_has_no_anchors() -> None:
    assert log_price_cut(compile_instance(cases.problem(1, 1, {"a": (5, {"whole": (2.0, 0.0)})}))) == 1


def test_equal_errors_cut_at_the_smallest_index() -> None:
    # ln 1, ln e, ln e^2: cutting after 1 or after 2 leaves one pair each, SSE 1/2 both ways.
    groups = {f"g{i}": (1, {"whole": (math.exp(i), 0.0)}) for i in range(3)}
    assert log_price_cut(compile_instance(cases.problem(1, 1, groups))) == 1


# Fillers, page 4.3.


def test_the_headroom_rule_of_golden_case_z9_prefers_rank_one() -> None:
    ledger = np.array([[4.0, 1.0], [2.0, 9.0]])
    filler = Mode(0, 1, 1.0, 0.5)
    assert spread(ledger, filler, 1, 5.0, 10.0, memory_scale=10.0).tolist() == [0, 1]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=1, max_size=6),
    st.integers(1, 60),
    st.integers(1, 9),
    st.integers(0, 5),
    st.sampled_from([math.inf, 32.0, 7.0]),
)
def test_spreading_a_count_is_the_rule_one_sequence_at_a_time(
    ledgers: list[tuple[int, int]], count: int, price: int, size: int, scale: float
) -> None:
    """Multiples of 1/8 keep every headroom exact, so that ties are ties."""
    cap, mean = 32.0, 16.0
    ledger = np.array([[time / 8 for time, _ in ledgers], [memory / 8 for _, memory in ledgers]])
    filler = Mode(0, 1, price / 8, size / 8)

    def headroom(rank: int, number: int) -> float:
        """min(ρC, ρM) of the number-th filler on a rank; -inf without memory for it."""
        time = (mean - ledger[0, rank] - number * filler.time_s) / mean
        memory = cap - ledger[1, rank] - number * filler.memory_bytes
        return -math.inf if memory < 0 else min(time, memory / scale) if not math.isinf(scale) else time

    given = [0] * len(ledgers)
    expected = []
    for _ in range(count):
        values = [headroom(rank, given[rank] + 1) for rank in range(len(ledgers))]
        if (best := max(values)) == -math.inf:
            break
        expected.append(best)
        given[values.index(best)] += 1
    got = spread(ledger, filler, count, mean, cap, memory_scale=scale).tolist()
    # Which of several equal headrooms is taken is open; the headrooms taken are not.
    taken = [headroom(rank, number) for rank, placed in enumerate(got) for number in range(1, placed + 1)]
    assert sorted(taken) == pytest.approx(sorted(expected))


def test_fillers_without_memory_are_reported_not_dropped() -> None:
    instance = compile_instance(cases.problem(2, 10, {"a": (5, {"whole": (1.0, 4.0)})}))
    placed, left = pack_fillers(instance, {0: instance.kinds[0].modes[0]}, np.zeros((2, 2)), rule=Rule.TIME)
    assert sum(placed.values()) == 4
    assert left == {0: 1}


# The ledger behind the anchors.


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_the_ledger_keeps_its_sums_through_changes_and_returns(seed: int) -> None:
    source = random.Random(seed)
    ledger = Ledger(80, 100.0, 200.0, 0.3)
    levels = [ledger.level(aligned_blocks(80, 8, degree)) for degree in (1, 2, 8)]
    ledger.target_s = 20.0
    ledger.clear()
    snapshot = ledger.snapshot()
    for _ in range(30):
        level = source.choice(levels)
        block = source.randrange(len(level.blocks))
        ledger.shift(level.blocks[block], source.randint(1, 9), source.randint(0, 9))
        if source.random() < 0.2:
            snapshot = ledger.snapshot()
        if source.random() < 0.1:
            ledger.restore(snapshot)
            snapshot = ledger.snapshot()
    kept = ledger.excess()
    for level in levels:
        busiest = [max(ledger.load_s[rank] for rank in ranks) for ranks in level.blocks]
        assert ledger.ordered(level) == sorted(zip(busiest, range(len(level.blocks)), strict=True))
    ledger.aim(ledger.target_s)
    assert kept == pytest.approx(ledger.excess())


def test_a_divisible_load_is_worth_what_memory_lets_it_fill() -> None:
    # Rank 0 has memory for 1 s of filler, rank 1 for 9 s: 6 s of filler end at 5 s on rank 1, not at 3.
    ledger = Ledger(2, 10.0, 6.0, 1.0)
    ledger.shift((0,), 0.0, 9.0)
    ledger.shift((1,), 0.0, 1.0)
    assert ledger.worth() == pytest.approx(5.0)
    ledger.shift((1,), 0.0, 5.0)
    assert ledger.worth() == math.inf


# The whole engine.


@pytest.mark.parametrize("case", ["Z1", "Z2", "Z3", "Z4", "Z6", "Z7"])
def test_small_golden_cases_are_proved_optimal_by_default(case: str) -> None:
    instance = cases.golden_instance(case)
    assert is_small(instance)
    solution, report = solve(instance.problem, None, Limits())
    assert report.status is Status.OPTIMAL
    answer = {"Z1": (5.5, 1), "Z2": (9, 1), "Z3": (4, 1), "Z4": (5.8, 2), "Z6": (6.25, 1), "Z7": (11.5, 1)}[case]
    assert (solution.metrics.makespan_s, solution.metrics.split_sequences) == (pytest.approx(answer[0]), answer[1])


@given(cases.small_problems())
@settings(max_examples=60, deadline=None)
def test_the_fast_engine_is_legal_and_between_the_bound_and_every_cheap_baseline(problem: object) -> None:
    instance = compile_instance(problem)  # type: ignore[arg-type]
    best = best_by_enumeration(instance) if all(kind.modes for kind in instance.kinds) else None
    if best is None:
        with pytest.raises(InfeasibleError):
            solve(instance.problem, "fast", Limits())
        return
    solution, _ = solve(instance.problem, "fast", Limits())
    assert check(instance.problem, solution) == []
    makespan = solution.metrics.makespan_s
    assert makespan >= max(bound.value for bound in quick_bounds(instance)) * (1 - 1e-9)
    assert makespan >= best[0] * (1 - 1e-9)
    feasible = [c.makespan_s for c in cheap_placements(instance) if c.feasible and c.makespan_s is not None]
    assert all(makespan <= other * (1 + 1e-9) for other in feasible)


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_places_every_sequence_the_same_way_twice(method: str) -> None:
    instance = ideal(8, {"long": (2, 40.0), "mid": (6, 9.0), "img": (30, 0.7)})
    first, report = solve(instance.problem, method, Limits(effort=0.05))
    second, _ = solve(instance.problem, method, Limits(effort=0.05))
    assert first == second
    assert report.method == method
    assert check(instance.problem, first) == []


@pytest.mark.parametrize("scale", [1e-9, 1e6])
def test_prices_of_any_scale_give_the_same_placement(scale: float) -> None:
    groups = {
        "long": (3, {"whole": (36.0, 9.0), "q2": (19.0, 5.0), "q4": (10.0, 3.0)}),
        "mid": (7, {"whole": (8.0, 4.0), "q2": (4.5, 2.0)}),
        "img": (60, {"whole": (0.5, 1.0)}),
    }
    one = solve(cases.problem(16, 60, groups, node=8), "fast", Limits())[0]
    other = solve(cases.problem(16, 60, groups, node=8, scale=scale), "fast", Limits())[0]
    assert one.placements == other.placements
    assert other.metrics.makespan_s == pytest.approx(one.metrics.makespan_s * scale)


def test_more_effort_is_never_worse() -> None:
    source = random.Random(3)
    groups = {
        f"v{i}": (1, {"whole": (w, 1.0), "q2": (w * 0.53, 1.0), "q4": (w * 0.28, 1.0)})
        for i in range(24)
        for w in (source.uniform(2, 20),)
    }
    instance = compile_instance(cases.problem(8, 1e9, groups))
    bound = max(b.value for b in quick_bounds(instance))
    found = [solve_fast(instance, bound, effort=effort) for effort in (0.01, 1, 10)]
    makespans = [f.makespan_s for f in found if f is not None]
    assert makespans[1] <= makespans[0] * (1 + 1e-12)
    assert makespans[2] <= makespans[1] * 1.002


def test_where_nothing_needs_a_split_the_plan_does_not_lose_to_longest_first() -> None:
    groups = {f"g{i}": (40 + 7 * i, {"whole": (0.1 * 1.7**i, 1.0)}) for i in range(6)}
    instance = compile_instance(cases.problem(16, 1e9, groups))
    longest_first = next(c for c in cheap_placements(instance) if c.name == "pure_dp")
    placement, _ = fast(instance, Limits())
    assert longest_first.makespan_s is not None
    assert max(loads(instance, placement)[0]) <= longest_first.makespan_s


def test_a_tight_memory_cap_is_met_by_climbing_the_ladder() -> None:
    # 12 fillers of 5 bytes and a long one of 9 on 2 ranks of 35: time alone would overfill the rank without the long.
    groups = {"long": (1, {"whole": (30.0, 9.0)}), "fill": (12, {"whole": (1.0, 5.0)})}
    problem = cases.problem(2, 35, groups)
    solution, _ = solve(problem, "fast", Limits())
    assert check(problem, solution) == []
    assert max(solution.metrics.rank_memory_bytes) <= 35


def test_fillers_that_are_cheaper_split_are_split() -> None:
    groups = {"img": (400, {"whole": (1.0, 1.0), "q2": (0.45, 0.5)}), "long": (2, {"whole": (50.0, 1.0)})}
    solution, _ = solve(cases.problem(8, 1e9, groups), "fast", Limits())
    assert solution.metrics.makespan_s < (400 + 100) / 8


def test_fifty_thousand_equal_sequences_make_no_solver_variables_of_their_own() -> None:
    groups = {f"g{i}": (6000, {"whole": (0.01 * (i + 1), 1.0)}) for i in range(9)}
    instance = compile_instance(cases.problem(64, 1e9, groups, node=8))
    assert len(instance.kinds) == 9
    placement, report = fast(instance, Limits())
    assert sum(placement.values()) == 54_000
    assert len(placement) <= 9 * 64
    assert report.objective <= max(b.value for b in quick_bounds(instance)) * 1.001


def test_whole_sequences_stay_on_the_ranks_that_a_list_allows() -> None:
    problem = golden.problem(
        2,
        {"whole": (1, 1, 1)},
        {"a": (3, {"whole": (1.0, 1.0)}), "b": (3, {"whole": (2.0, 1.0)})},
        policy="explicit",
        sets={"whole": [[0]]},
    )
    for method in (None, *METHODS):
        solution, _ = solve(problem.sorted(), method, Limits())
        assert check(problem, solution) == []
        assert solution.metrics.rank_time_s == (9.0, 0.0)


def test_short_sequences_stay_whole_unless_splitting_them_clearly_helps() -> None:
    # k2 saves 4 % of a clip's work: 0.02 % of the step.
    groups = {
        "long": (8, {"whole": (100.0, 1.0)}),
        "clip": (8, {"whole": (2.0, 1.0), "q2": (0.99, 0.5)}),
        "img": (200, {"whole": (0.1, 1.0)}),
    }
    solution, _ = solve(cases.problem(16, 1e9, groups, node=8), "fast", Limits())
    assert solution.metrics.split_sequences == 0
