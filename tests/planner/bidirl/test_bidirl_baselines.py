"""Every baseline of the page is there, with the figures that its words lead to, and so are the splits behind them."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest
from bidirl_cases import changed, document, layout, linear, problem, small

from planner.comparison import compare_document
from planner.envelope import dump_model
from planner.errors import InfeasibleError
from planner.paper import Baseline
from planner.papers.bidirl.baselines import baselines
from planner.papers.bidirl.engines import solve
from planner.papers.bidirl.formulation import enumerated
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.replay.of_split import setting_of
from planner.papers.bidirl.search import space_of
from planner.papers.bidirl.solution import POLICIES, BidirlSolution
from planner.papers.bidirl.split_figures import figures_of
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.sweep import even_split, worst_split
from planner.plan import Options
from solvers.report import Limits


def by_name(one: BidirlProblem) -> dict[str, Baseline[BidirlSolution]]:
    """The baselines of a problem."""
    return {baseline.name: baseline for baseline in baselines(one, Limits())}


def test_baselines_stand_in_the_order_of_the_page() -> None:
    names = [baseline.name for baseline in baselines(problem(), Limits())]
    assert names == [*POLICIES, "paper_planner", "rlinf_style", "worst_split"]


def test_the_first_case_is_told_beside_its_baselines() -> None:
    found = by_name(problem())
    # 4400, 3956.845 and 4140 s are those of golden case 1: a step of 2 + 210, of 193.645 and of 95 + 100 + 12 s.
    assert found["no_borrow"].objective == pytest.approx(212)
    assert found["no_borrow"].note == (
        "run of 4400 s, 1.112 of the plan's; step 212 s; idle 3.64 % of rollout, 26.36 % of train"
    )
    assert found["rollout_on_train"].objective == pytest.approx(193.645)
    assert found["rollout_on_train"].note.startswith("run of 3957 s, 1.000 of the plan's; step 193.6 s; idle")
    # (10 + 400/4) + (10 + 300/4) + 2 * 6 against 212 of two pools.
    assert found["rlinf_style"].objective == pytest.approx(207)
    assert found["rlinf_style"].note == ("all GPUs in turn, tp2 and fsdp2; two pools, 4+4 GPUs, tp2 and fsdp2: 212 s")
    # 2+6: M_r = 10 + 400. It has 20 steps of M_r + w, then 110 s of training at the end of the last.
    assert found["worst_split"].objective == pytest.approx(410)
    assert found["worst_split"].note.startswith("2+6 GPUs, tp2 and fsdp2; run of 8350 s, 2.110 of the plan's")
    for name in ("half_split", "paper_planner"):
        assert found[name].objective == 210


def test_steps_are_set_beside_the_step_of_the_plan_and_objectives_beside_its_objective() -> None:
    """On policy without lending a step takes 2 + 210 + 160 s, which is what (1), 210 s, does not say."""
    switch = {
        "rollout_on_train": {"in_s": 300, "out_s": 5},
        "train_on_rollout": {"in_s": 300, "out_s": 5, "grad_s": 1},
    }
    one = problem(staleness=0, costs__colocated_switch_s=20, costs__switch=switch)
    found = by_name(one)
    for name in (*(policy for policy in POLICIES if policy != "half_split"), "rlinf_style"):
        assert found[name].beside == pytest.approx(372), name
    for name in ("half_split", "paper_planner", "worst_split"):
        assert found[name].beside is None
    compared = compare_document(dump_model(one), Options())
    ratios = {baseline.name: compared.ratio(baseline) for baseline in compared.baselines}
    assert ratios["no_borrow"] == pytest.approx(1)
    # 110 s of rollout and 85 of training on all 8, and twice 20.
    assert ratios["colocated"] == ratios["rlinf_style"] == pytest.approx(235 / 372)
    assert ratios["worst_split"] == pytest.approx(410 / 210)


def test_what_is_no_answer_of_the_problem_says_so_and_the_others_have_a_split() -> None:
    splits = {"half_split", "paper_planner", "worst_split"}
    for baseline in baselines(problem(), Limits()):
        assert baseline.outside == (baseline.name not in splits)
        assert (baseline.solution is None) == baseline.outside
        if baseline.solution is not None:
            assert baseline.solution.rule == baseline.name
            assert baseline.solution.objective_s == baseline.objective


def test_two_pools_may_be_better_than_all_gpus_in_turn() -> None:
    found = by_name(problem(costs__colocated_switch_s=20))["rlinf_style"]
    assert found.objective == pytest.approx(212)  # of 235
    assert found.note == "two pools, 4+4 GPUs, tp2 and fsdp2; all GPUs in turn, tp2 and fsdp2: 235 s"


def test_a_table_that_ends_before_all_gpus_has_no_time_in_turn() -> None:
    table = {"kind": "table", "replicas": [1, 2, 3], "time_s": [410, 210, 150]}
    one = problem(costs__rollout_layouts=[layout("tp2", 2, table)])
    found = by_name(one)
    assert found["rlinf_style"].note == "two pools, 4+4 GPUs, tp2 and fsdp2; no times of all GPUs in turn"
    # The policy goes by the planned 210 s on 2 of 4 replicas then: 105 + 85 + 12.
    assert found["colocated"].objective == pytest.approx(202)
    # Where it is listed, by that: 180 + 85 + 12.
    listed = {"kind": "table", "replicas": [1, 2, 3, 4], "time_s": [410, 210, 200, 180]}
    found = by_name(problem(costs__rollout_layouts=[layout("tp2", 2, listed)]))
    assert found["colocated"].objective == pytest.approx(277)


def test_a_direction_that_the_problem_rules_out_is_said_and_never_lent() -> None:
    found = by_name(problem(hot_switch={"rollout_on_train": False, "train_on_rollout": True}))
    assert found["rollout_on_train"].note.endswith("; hot_switch.rollout_on_train is false")
    assert found["bidirectional"].note.endswith("; hot_switch.rollout_on_train is false")
    assert "hot_switch" not in found["train_on_rollout"].note
    assert found["rollout_on_train"].objective == found["no_borrow"].objective


def test_the_paper_planner_goes_by_the_smallest_layout_and_the_slower_stage() -> None:
    # On 4 GPUs, four replicas of one take 200 + 400/4 and one of four 10 + 100.
    slow_small = layout("tp1", 1, linear(200, 400))
    quick_large = layout("tp4", 4, linear(10, 100))
    one = problem(costs__rollout_layouts=[slow_small, quick_large], objective="period", staleness=0)
    plan = solve(one, None, Limits())[0]
    assert plan.rollout_layout == "tp4"
    found = by_name(one)["paper_planner"]
    assert found.solution is not None
    assert found.solution.rollout_layout == "tp1"
    assert found.objective is not None
    assert found.objective > plan.objective_s
    # What it minimises is max(M_r, M_t) over 2+6, 4+4 and 6+2: (400, 110), (300, 160), (266.7, 310).
    assert found.solution.rollout_gpus == 4
    assert found.objective == pytest.approx(2 + 300 + 160)


def test_where_the_smallest_layouts_have_no_split_the_paper_planner_fails() -> None:
    # A replica of 3 GPUs tiles no node of 8.
    one = problem(costs__rollout_layouts=[layout("tp3", 3, linear(10, 400)), layout("tp4", 4, linear(10, 400))])
    found = by_name(problem(changed(_document_of(one), costs__train_layouts=[layout("fsdp2", 2, linear(10, 300))])))
    assert found["paper_planner"].objective is None
    assert found["paper_planner"].note == "no allowed split of the smallest layouts"


def _document_of(one: BidirlProblem) -> dict[str, Any]:
    made: dict[str, Any] = one.model_dump(mode="json")
    return made


def test_no_split_at_all_is_infeasible_here_too() -> None:
    with pytest.raises(InfeasibleError):
        baselines(problem(costs__rollout_layouts=[layout("tp3", 3, linear(10, 400))]), Limits())


# Splits that are not the best, against the reference.


@pytest.mark.parametrize("block", range(4))
def test_the_even_and_the_worst_split_are_those_of_the_reference(block: int) -> None:
    met = 0
    for seed in range(40 * block, 40 * block + 40):
        one = small(seed)
        all_of = list(enumerated(one))
        even, worst = even_split(one, space_of(one)), worst_split(one, space_of(one))
        if not all_of:
            assert even is None
            assert worst is None
            continue
        met += 1
        gpus = one.cluster.gpus
        nearest = min((abs(2 * timed.split.rollout_gpus - gpus), timed.split.rollout_gpus) for timed in all_of)[1]
        assert even is not None
        assert even.rollout_gpus == nearest
        beside_s = [timed.objective_s for timed in all_of if timed.split.rollout_gpus == nearest]
        assert figures_of(one, even).objective_s == pytest.approx(min(beside_s), rel=1e-9)
        # Where GPUs may stay idle, of each rollout pool and pair of layouts the best train pool counts.
        kept: dict[tuple[int, str, str], float] = {}
        for timed in all_of:
            split = timed.split
            key = (split.rollout_gpus, split.rollout.id, split.train.id)
            kept[key] = min(kept.get(key, timed.objective_s), timed.objective_s)
        assert worst is not None
        assert figures_of(one, worst).objective_s == pytest.approx(max(kept.values()), rel=1e-9)
    assert met > 5


@pytest.mark.parametrize(("gpus", "rollout_gpus"), [(8, 4), (10, 4), (12, 6)])
def test_of_two_splits_as_near_to_a_half_the_smaller_rollout_pool_is_taken(gpus: int, rollout_gpus: int) -> None:
    # Pools of even size: of 10 GPUs, 4 and 6 are as near.
    even = even_split(*_with_space(problem(cluster__gpus=gpus, cluster__gpus_per_node=2)))
    assert even is not None
    assert even.rollout_gpus == rollout_gpus


def _with_space(one: BidirlProblem) -> tuple[BidirlProblem, Any]:
    return one, space_of(one)


# What a replay is given of a problem.


def test_a_linear_time_gives_its_parts_and_any_other_kind_its_time_at_the_planned_replicas() -> None:
    stages = {"kind": "stages", "stages": [{"name": "update", "fixed_s": 3, "chunks": 64, "chunk_s": 2}]}
    one = problem(
        costs__rollout_layouts=[layout("tp2", 2, linear(10, 400, 0.5))],
        costs__train_layouts=[layout("fsdp2", 2, stages)],
        simulation={"steps": 3, "work_factor": [1, 2], "max_response_tokens": [100]},
    )
    setting = setting_of(one, Split(6, 2, one.costs.rollout_layouts[0], one.costs.train_layouts[0]))
    assert astuple(setting.rollout) == (3, 10.0, 400.0, 0.5, 1)
    assert astuple(setting.train) == (1, 0.0, 131.0, 0.0, 3)
    assert astuple(setting.colocated_rollout) == (4, 10.0, 400.0, 0.5, 0)
    # ceil(64/4) chunks of 2 s and 3 s on all 4 replicas.
    assert astuple(setting.colocated_train) == (4, 0.0, 4 * 35.0, 0.0, 0)
    assert setting.work_factor == (1.0, 2.0, 1.0)
    assert setting.max_response_tokens == (100.0, 100.0, 100.0)
    assert astuple(setting.train_on_rollout) == (6.16, 5.62, 1.21)


def test_a_direction_without_costs_has_no_helpers() -> None:
    costs = document()["costs"] | {"switch": {}}
    one = problem(costs=costs, hot_switch={"rollout_on_train": False, "train_on_rollout": False})
    setting = setting_of(one, Split(4, 4, one.costs.rollout_layouts[0], one.costs.train_layouts[0]))
    assert (setting.rollout.helpers, setting.train.helpers) == (0, 0)
    stated = solve(one, None, Limits())[0]
    assert stated.policy == "no_borrow"
    assert stated.simulation is not None
    assert {row.makespan_s for name, row in stated.simulation.items() if name != "colocated"} == {4400.0}


def test_half_split_is_replayed_on_its_own_split() -> None:
    # Training alone takes as long as it is: the plan gives it 6 of 8 GPUs; in halves it is 10 + 1200/2.
    one = problem(costs__train_layouts=[layout("fsdp2", 2, linear(10, 1200))])
    stated = solve(one, None, Limits())[0]
    assert stated.rollout_gpus == 2
    assert stated.simulation is not None
    assert stated.simulation["half_split"].step_period_s == pytest.approx(2 + 610)
    assert stated.simulation["no_borrow"].step_period_s == pytest.approx(2 + 410)
