"""Golden cases 1 to 3, 6 and 7 of the page, as far as they are of the static plan."""

from __future__ import annotations

import pytest
from bidirl_cases import FOUR_B, TWO_B, changed, eight_and_eight, layout, linear, problem

from planner.errors import InfeasibleError
from planner.papers.bidirl.engines import solve
from planner.papers.bidirl.formulation import enumerated
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.search import best_split, space_of
from planner.papers.bidirl.solution import BidirlSolution
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.thresholds import backlogs, thresholds
from solvers.report import Limits


def solved(one: BidirlProblem) -> BidirlSolution:
    return solve(one, None, Limits())[0]


def test_the_first_case_splits_in_halves() -> None:
    # M_r = 10 + 400 / 2 = 210, M_t = 10 + 300 / 2 = 160; lambda = 64 / 210.
    solution = solved(problem())
    assert (solution.rollout_gpus, solution.train_gpus) == (4, 4)
    assert (solution.rollout_replicas, solution.train_replicas) == (2, 2)
    assert (solution.rollout_time_s, solution.train_time_s, solution.objective_s) == (210, 160, 210)
    assert solution.lambda_pipe_groups_per_s == pytest.approx(0.3047619047619048, rel=1e-12)


def test_the_first_case_has_three_splits() -> None:
    times = {timed.split.rollout_gpus: (timed.rollout_s, timed.train_s) for timed in enumerated(problem())}
    assert times == {
        2: (410, pytest.approx(110)),
        4: (210, 160),
        6: (pytest.approx(10 + 400 / 3), 310),
    }


def test_the_first_case_is_bounded_where_both_curves_cross() -> None:
    # 10 + 400 * 2 / g = 10 + 300 * 2 / (8 - g) at g = 32 / 7 = 4.571, where both are 185.
    assert solved(problem()).fractional_bound_s == pytest.approx(185, rel=1e-11)


def test_the_first_case_lends_from_nine_groups_and_ten_chunks_on() -> None:
    stated = solved(problem()).thresholds
    assert stated is not None
    assert (stated.min_missing_groups, stated.min_remaining_chunks) == (9, 10)


def test_the_first_case_lends_the_train_pool_alone() -> None:
    solution = solved(problem())
    assert solution.policy == "rollout_on_train"
    assert solution.simulation is not None
    assert solution.simulation["no_borrow"].makespan_s == pytest.approx(4400, rel=1e-12)
    assert solution.simulation["rollout_on_train"].makespan_s == pytest.approx(3956.845, rel=1e-12)
    assert solution.simulation["colocated"].makespan_s == pytest.approx(4140, rel=1e-12)


@pytest.mark.parametrize(("staleness", "period_s"), [(0, 372), (0.5, 262), (1, 212), (3, 212)])
def test_the_step_period_depends_on_what_may_be_stale(staleness: float, period_s: float) -> None:
    # 2 + 210 + 160; 2 + 160 + 0.5 * 200; 2 + 210; whole versions beyond the first change nothing.
    solution = solved(problem(objective="period", staleness=staleness))
    assert (solution.rollout_gpus, solution.objective_s) == (4, pytest.approx(period_s, rel=1e-12))


@pytest.mark.parametrize(("switch", "groups", "chunks"), [(FOUR_B, 6, 8), (TWO_B, 5, 4)])
def test_published_switch_costs_give_the_published_like_thresholds(switch: object, groups: int, chunks: int) -> None:
    one = eight_and_eight(switch)  # type: ignore[arg-type]
    split = Split(8, 8, one.costs.rollout_layouts[0], one.costs.train_layouts[0])
    stated = thresholds(one, split)
    assert (stated.min_missing_groups, stated.min_remaining_chunks) == (groups, chunks)


@pytest.mark.parametrize(("switch", "groups", "chunks"), [(FOUR_B, 5.6704, 6.3424), (TWO_B, 4.1557, 3.7440)])
def test_linear_times_give_thresholds_in_closed_form(switch: object, groups: float, chunks: float) -> None:
    one = eight_and_eight(switch)  # type: ignore[arg-type]
    found = backlogs(one, Split(8, 8, one.costs.rollout_layouts[0], one.costs.train_layouts[0]))
    assert found.missing_groups == pytest.approx(groups, abs=5e-5)
    assert found.remaining_chunks == pytest.approx(chunks, abs=5e-5)


def ten_gpus() -> dict[str, object]:
    """Golden case 6: nodes of 2, replicas of 1 and of 4 GPUs."""
    return changed(
        cluster__gpus=10,
        cluster__gpus_per_node=2,
        costs__rollout_layouts=[layout("tp1", 1, linear(5, 300))],
        costs__train_layouts=[layout("fsdp4", 4, linear(5, 300))],
    )


def test_pools_that_must_be_multiples_of_four_do_not_split_ten_gpus() -> None:
    with pytest.raises(InfeasibleError) as raised:
        solved(problem(ten_gpus()))
    assert raised.value.code == "no_compatible_split"
    assert raised.value.relaxation is not None
    assert (raised.value.relaxation.field, raised.value.relaxation.value) == ("allow_idle_gpus", "true")
    for told in ("both pools are multiples of 4", "2 idle GPUs", "12 GPUs"):
        assert told in raised.value.message


def test_both_relaxations_of_ten_gpus_give_the_times_of_the_page() -> None:
    idle = solved(problem(ten_gpus(), allow_idle_gpus=True))
    assert (idle.rollout_gpus, idle.train_gpus, idle.objective_s) == (4, 4, 305)
    more = solved(problem(ten_gpus(), cluster__gpus=12))
    assert (more.rollout_gpus, more.train_gpus, more.objective_s) == (4, 8, 155)


@pytest.mark.parametrize(("needed_bytes", "chosen"), [(73e9, "fsdp4"), (71e9, "fsdp2")])
def test_the_smallest_layout_that_fits_is_minimal(needed_bytes: float, chosen: str) -> None:
    # 8e9 parameters at 16 bytes over 2 GPUs are 64e9; 9e9 or 7e9 of activations beside; 0.9 * 80e9 = 72e9 usable.
    layouts = [layout("fsdp2", 2, linear(10, 300), needed_bytes), layout("fsdp4", 4, linear(10, 200), 41e9)]
    one = problem(costs__train_layouts=layouts, layout_policy="minimal")
    assert [each.id for each in space_of(one).train] == [chosen]
    split = best_split(one)
    assert split is not None
    assert split.train.id == chosen


def test_more_memory_than_any_gpu_has_names_what_is_short() -> None:
    layouts = [layout("fsdp2", 2, linear(10, 300), 73e9)]
    with pytest.raises(InfeasibleError) as raised:
        solved(problem(costs__train_layouts=layouts))
    assert raised.value.code == "train_memory_infeasible"
    assert (raised.value.required, raised.value.available) == (73e9, 72e9)
    assert "fsdp2 on 2 GPUs, 1 GB short" in raised.value.message
    relaxation = raised.value.relaxation
    assert relaxation is not None
    assert (relaxation.field, relaxation.value) == ("cluster.gpu_memory_bytes", pytest.approx(73e9 / 0.9))
    # What is named is enough.
    assert solved(problem(costs__train_layouts=layouts, cluster__gpu_memory_bytes=relaxation.value)).train_gpus == 4
