"""The baselines give the page's quoted values (section 10) and place what their rules say."""

from __future__ import annotations

import heapq
import math

import pytest
import zellige_golden as golden
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.papers.zellige.baselines import baselines, cheap_placements
from planner.papers.zellige.check import check
from planner.papers.zellige.hybrid_cp import hybrid_cp
from planner.papers.zellige.instance import compile_instance
from planner.papers.zellige.knapformer import fill_bags, knapformer
from planner.papers.zellige.longest_first import Candidate, homogeneous_d, pure_cp, pure_dp
from planner.papers.zellige.problem import ZelligeProblem
from planner.papers.zellige.segments import build_solution
from planner.papers.zellige.spread import Bins, memory_room, spread
from solvers.report import Limits

WHOLE = {"whole": (1, 1, 1)}


def whole_times(num_ranks: int, *times: float) -> ZelligeProblem:
    groups = {f"s{i}x": (1, {"whole": (t, 0.0)}) for i, t in enumerate(times)}
    return golden.problem(num_ranks, WHOLE, groups)


def test_z1_whole_sequences_only_take_eight_seconds() -> None:
    # x alone takes 8; the mids and images fit beside it on the other three ranks.
    assert pure_dp(compile_instance(golden.z1_problem())).makespan_s == 8.0


def test_z2_theorem_2_separates_the_rules() -> None:
    instance = compile_instance(golden.z2_problem())
    assert pure_dp(instance).makespan_s == 28.0
    assert fill_bags(instance, (1, 1, 1, 1)).makespan_s == 28.0
    assert fill_bags(instance, (1, 1, 2)).makespan_s == 14.0
    assert fill_bags(instance, (4,)).makespan_s == 9.0
    best = knapformer(instance)
    assert (best.makespan_s, best.note) == (9.0, "1 bags of 4")
    # All on all ranks: 7 + 8/4.
    assert pure_cp(instance).makespan_s == 9.0
    assert homogeneous_d(instance).makespan_s == 9.0


def test_z3_theorem_1_lower_end_is_tight_for_whole_sequences() -> None:
    assert pure_dp(compile_instance(golden.z3_problem())).makespan_s == 8.0


def test_longest_first_is_not_optimal_on_the_pages_list() -> None:
    # 5,5,4,4,3,3,3 is already longest first, so list order and longest first are one: (5,3) (5,3) (4,4,3) = 11.
    assert pure_dp(compile_instance(whole_times(3, 5, 5, 4, 4, 3, 3, 3))).makespan_s == 11.0


def test_z4_whole_videos_do_not_fit_and_the_answer_names_one() -> None:
    configs = golden.SPLITS | {"k2": (1, 1, 2), "k4": (1, 1, 4)}
    video = {"whole": (8.0, 28.0), "q2": (4.16, 18.0), "k2": (4.8, 12.0), "q4": (2.24, 11.0), "k4": (2.72, 6.0)}
    instance = compile_instance(
        golden.problem(4, configs, {"v": (2, video), "f": (4, {"whole": (1.0, 7.0)})}, cap=24.0)
    )
    candidate = pure_dp(instance)
    assert (candidate.makespan_s, candidate.feasible) == (None, False)
    assert '"v0"' in candidate.note
    # Least power of two that fits alone is 2, the fastest such option q2 (18 of 24 bytes): a pair of ranks each, and
    # no rank then has 7 bytes left for a filler.
    assert hybrid_cp(instance) == Candidate("hybrid_cp", None, None, False, 'no memory left for "f0"')


def test_memory_over_the_cap_is_reported_after_the_fact_where_the_rule_has_no_test() -> None:
    instance = compile_instance(golden.problem(2, WHOLE | {"q2": (2, 1, 1)}, {"a": (3, {"q2": (1.0, 5.0)})}, cap=10.0))
    for candidate in (pure_cp(instance), knapformer(instance)):
        assert (candidate.makespan_s, candidate.feasible) == (3.0, False)
        assert "15 bytes of 10" in candidate.note
    assert homogeneous_d(instance).makespan_s is None


def test_longest_first_skips_ranks_without_memory() -> None:
    # The 3 s sequence fills rank 0's memory, so all four 1 s sequences go to rank 1.
    groups: dict[str, golden.Group] = {"a": (1, {"whole": (3.0, 10.0)}), "b": (4, {"whole": (1.0, 2.0)})}
    candidate = pure_dp(compile_instance(golden.problem(2, WHOLE, groups, cap=10.0)))
    assert candidate.makespan_s == 4.0


def test_hybrid_groups_of_one_degree_share_ranks_with_other_degrees() -> None:
    # big needs two ranks (8 > 5 bytes whole): ranks 0-1, 4 s; then 3 s to rank 2, 2 s to rank 3, 1 s to rank 3.
    groups: dict[str, golden.Group] = {
        "big": (1, {"whole": (7.0, 8.0), "q2": (4.0, 4.0)}),
        "c": (1, {"whole": (3.0, 1.0)}),
        "d": (1, {"whole": (2.0, 1.0)}),
        "e": (1, {"whole": (1.0, 1.0)}),
        "f": (1, {"whole": (0.5, 1.0)}),
    }
    instance = compile_instance(golden.problem(4, golden.SPLITS, groups, cap=5.0))
    candidate = hybrid_cp(instance)
    assert candidate.makespan_s == 4.0
    assert {piece.ranks for piece in candidate.placement or {}} == {(0, 1), (2,), (3,)}


def test_a_sequence_without_any_usable_option_fails_every_rule_by_name() -> None:
    instance = compile_instance(golden.problem(2, WHOLE, {"a": (1, {"whole": (1.0, 9.0)})}, cap=5.0))
    for candidate in cheap_placements(instance):
        assert not candidate.feasible
        assert '"a0"' in candidate.note


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e6])
def test_the_rules_decide_alike_in_any_unit_of_time(unit: float) -> None:
    groups: dict[str, golden.Group] = {
        "big": (1, {"whole": (28.0 * unit, 0), "q2": (14.0 * unit, 0), "q4": (7.0 * unit, 0)}),
        "fill": (8, {"whole": (1.0 * unit, 0), "q2": (0.5 * unit, 0), "q4": (0.25 * unit, 0)}),
    }
    scaled = cheap_placements(compile_instance(golden.problem(4, golden.SPLITS, groups)))
    plain = cheap_placements(compile_instance(golden.z2_problem()))
    assert [candidate.placement for candidate in scaled] == [candidate.placement for candidate in plain]


def test_settings_above_the_makespan_to_beat_are_not_tried() -> None:
    found = {candidate.name: candidate for candidate in cheap_placements(compile_instance(golden.z2_problem()), 8.9)}
    assert found["homogeneous_d"].placement is None
    assert found["homogeneous_d"].note == "cannot be below 8.9 s"


@st.composite
def problems(draw: st.DrawFn) -> ZelligeProblem:
    node = draw(st.sampled_from([1, 2, 3, 4, 8]))
    num_ranks = node * draw(st.integers(1, 4))
    shapes = [(1, 1, 1), (2, 1, 1), (1, 1, 2), (3, 1, 1), (4, 1, 1), (8, 1, 1)]
    configs = {f"c{q}{h}{k}": (q, h, k) for q, h, k in shapes if q * h * k <= num_ranks}
    price, size = st.integers(1, 40).map(float), st.integers(0, 12).map(float)
    groups: dict[str, golden.Group] = {}
    for name in "abcd"[: draw(st.integers(1, 4))]:
        offered = draw(st.sets(st.sampled_from(sorted(configs)), min_size=1))
        groups[name] = draw(st.integers(1, 30)), {c: (draw(price), draw(size)) for c in sorted(offered)}
    cap = draw(st.sampled_from([1000.0, 60.0, 12.0]))
    explicit = {"policy": "explicit", "sets": {"c211": [[0, 1]]}} if "c211" in configs and draw(st.booleans()) else {}
    return golden.problem(num_ranks, configs, groups, cap=cap, node=node, **explicit)


@settings(max_examples=200, deadline=None)
@given(problems())
def test_every_feasible_baseline_passes_the_check_at_its_own_makespan(problem: ZelligeProblem) -> None:
    instance = compile_instance(problem)
    for candidate in cheap_placements(instance):
        if candidate.placement is None:
            assert candidate.note
            assert not candidate.feasible
            continue
        solution = build_solution(instance, candidate.placement)
        codes = {violation.code for violation in check(problem, solution)}
        assert codes == (set() if candidate.feasible else {"memory_over_cap"})
        assert solution.metrics.makespan_s == candidate.makespan_s


def _one_by_one(count: int, steps: list[float], levels: list[float], room: list[int]) -> list[int]:
    """The rule as stated: every item to the lowest bin that has room."""
    taken = [0] * len(levels)
    heap = [(level, b) for b, level in enumerate(levels) if room[b]]
    heapq.heapify(heap)
    for _ in range(count):
        if not heap:
            break
        _, b = heapq.heappop(heap)
        taken[b] += 1
        if taken[b] < room[b]:
            heapq.heappush(heap, (levels[b] + taken[b] * steps[b], b))
    return taken


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_spreading_equal_items_is_the_rule_one_by_one(data: st.DataObject) -> None:
    number = data.draw(st.integers(1, 9))
    column = lambda low, high: st.lists(st.integers(low, high), min_size=number, max_size=number)  # noqa: E731
    levels = [float(level) for level in data.draw(column(0, 60))]
    steps = [float(step) for step in data.draw(column(1, 9))]
    room, count = data.draw(column(0, 40)), data.draw(st.integers(1, 120))
    assert spread(count, steps, levels, room) == _one_by_one(count, steps, levels, room)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 20), st.integers(0, 6)), max_size=8), st.integers(1, 12))
def test_bins_fill_alike_in_bulk_and_one_by_one(kinds: list[tuple[int, int, int]], number: int) -> None:
    cap = 40.0
    bins = Bins(number, cap)
    levels, used = [0.0] * number, [0.0] * number
    for count, step, memory in kinds:
        room = memory_room(count, cap, memory, used)
        expected = _one_by_one(count, [float(step)] * number, levels, room)
        assert bins.put(count, float(step), float(memory)) == {b: n for b, n in enumerate(expected) if n}
        levels = [level + n * step for level, n in zip(levels, expected, strict=True)]
        used = [held + n * memory for held, n in zip(used, expected, strict=True)]


def test_extreme_scales_do_not_break_the_spread() -> None:
    assert sum(spread(5, [1e-300, 1e300], [1e300, 0.0], [5, 5])) == 5
    assert sum(spread(1000, [5e-324] * 3, [1.0, 0.0, math.pi], [1000] * 3)) == 1000


def test_the_baselines_of_the_page_come_in_its_order_with_solutions_to_check() -> None:
    pytest.importorskip("planner.papers.zellige.disjoint")
    problem = golden.z1_problem()
    found = {baseline.name: baseline for baseline in baselines(problem, Limits())}
    assert list(found) == ["pure_dp", "pure_cp", "homogeneous_d", "best_disjoint", "knapformer", "hybrid_cp"]
    assert found["pure_dp"].objective == 8.0
    assert found["best_disjoint"].objective == 6.0
    for baseline in found.values():
        assert (baseline.solution is not None) == baseline.feasible
        if baseline.solution is not None:
            assert check(problem, baseline.solution) == []
            assert baseline.solution.metrics.makespan_s == baseline.objective


def test_a_thousand_ranks_are_placed_by_all_simple_rules() -> None:
    # 57,000 sequences in 9 kinds on 1,024 ranks.
    configs = {"whole": (1, 1, 1)} | {f"q{d}": (d, 1, 1) for d in (2, 4, 8, 16, 32, 64)}
    groups: dict[str, golden.Group] = {}
    for i in range(9):
        work = 2.0**i / 16
        prices = {name: (work / q + (q > 1) / 50, 1.0 / q) for name, (q, _, _) in configs.items()}
        groups[f"g{i}"] = (6333, prices)
    instance = compile_instance(golden.problem(1024, configs, groups, node=8))
    assert all(candidate.feasible for candidate in cheap_placements(instance) if candidate.name != "pure_cp")
