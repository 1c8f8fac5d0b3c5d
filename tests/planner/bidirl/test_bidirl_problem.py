"""What a problem file may say (page, section 9): faults with their place, and what is odd but legal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bidirl_cases import changed, document, layout, linear, problem

from planner.errors import BadInputError
from planner.papers.bidirl.drawing import workload
from planner.papers.bidirl.engines import solve
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.search import best_split
from planner.validation import validate
from solvers.report import Limits

LENGTHS: dict[str, Any] = {
    "kind": "lengths",
    "prompt_tokens": 100,
    "prefill_s_per_token": 1e-5,
    "mean_response_tokens": 500,
    "concurrency": 4,
    "step_base_s": 0.02,
    "step_per_sequence_s": 0.001,
}
DRAWN: dict[str, Any] = {"distribution": "lognormal", "median": 300, "sigma": 1.0, "cap": 2048}


def rollout(time: dict[str, Any]) -> list[dict[str, Any]]:
    """One rollout layout of two GPUs."""
    return [layout("tp2", 2, time)]


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({"staleness": -0.5}, "out_of_range", "staleness"),
        ({"staleness": float("nan")}, "not_finite", "staleness"),
        ({"cluster__gpus": 1}, "out_of_range", "cluster.gpus"),
        ({"cluster__memory_reserve_fraction": 1}, "out_of_range", "cluster.memory_reserve_fraction"),
        ({"batch__prompt_groups": 0}, "out_of_range", "batch.prompt_groups"),
        ({"batch__prompt_groups": 1.5}, "wrong_type", "batch.prompt_groups"),
        ({"objective": "speed"}, "out_of_range", "objective"),
        ({"costs__weight_sync_s": -1}, "out_of_range", "costs.weight_sync_s"),
        ({"costs__rollout_layouts": []}, "out_of_range", "costs.rollout_layouts"),
        ({"costs__rollout_layouts": rollout(linear(1, 2)) * 2}, "duplicate_id", "costs.rollout_layouts"),
        ({"costs__rollout_layouts": rollout(linear(0, 0))}, "out_of_range", "costs.rollout_layouts.tp2.time"),
        (
            {"costs__rollout_layouts": rollout(LENGTHS | {"mean_response_tokens": 2049})},
            "out_of_range",
            "costs.rollout_layouts.tp2.time.mean_response_tokens",
        ),
        (
            {"costs__rollout_layouts": rollout({"kind": "table", "replicas": [], "time_s": []})},
            "out_of_range",
            "costs.rollout_layouts.tp2.time.replicas",
        ),
        (
            {"costs__rollout_layouts": rollout({"kind": "table", "replicas": [2, 2], "time_s": [1.0, 2.0]})},
            "out_of_range",
            "costs.rollout_layouts.tp2.time.replicas",
        ),
        (
            {"costs__rollout_layouts": rollout({"kind": "table", "replicas": [1, 2], "time_s": [1.0]})},
            "out_of_range",
            "costs.rollout_layouts.tp2.time.time_s",
        ),
        (
            {"costs__rollout_layouts": rollout({"kind": "stages", "stages": []})},
            "out_of_range",
            "costs.rollout_layouts.tp2.time.kind",
        ),
        ({"costs__switch": {}}, "missing_field", "costs.switch.rollout_on_train"),
        (
            {"costs__switch": {"rollout_on_train": {"in_s": 1, "out_s": 1}}},
            "missing_field",
            "costs.switch.train_on_rollout",
        ),
        ({"simulation__steps": 0}, "out_of_range", "simulation.steps"),
        ({"simulation__work_factor": []}, "out_of_range", "simulation.work_factor"),
        ({"simulation__work_factor": [0]}, "out_of_range", "simulation.work_factor.0"),
        ({"simulation__batches": 3}, "out_of_range", "simulation.batches"),
        ({"simulation__responses": DRAWN}, "out_of_range", "simulation.responses"),
        (
            {"simulation": {"steps": 1, "responses": {"distribution": "empirical", "tokens": []}}},
            "out_of_range",
            "simulation.responses.tokens",
        ),
        (
            {"simulation": {"steps": 20_000, "responses": DRAWN}, "batch__prompt_groups": 10_000},
            "too_large",
            "simulation.batches",
        ),
        ({"gpus": 8}, "unknown_field", "gpus"),
    ],
)
def test_a_fault_names_its_place(changes: dict[str, Any], code: str, where: str) -> None:
    with pytest.raises(BadInputError) as raised:
        problem(**changes)
    assert (raised.value.code, raised.value.where) == (code, where)


def test_a_direction_that_is_off_needs_no_switch_costs() -> None:
    off = {"rollout_on_train": False, "train_on_rollout": False}
    solution, _ = solve(problem(costs__switch={}, hot_switch=off), None, Limits())
    assert solution.thresholds is not None
    assert (solution.thresholds.min_missing_groups, solution.thresholds.min_remaining_chunks) == (None, None)
    assert solution.policy == "no_borrow"


def test_too_many_splits_are_refused() -> None:
    layouts = [layout(f"l{k}", 1, linear(1, 1)) for k in range(64)]
    with pytest.raises(BadInputError) as raised:
        problem(cluster__gpus=8192, costs__rollout_layouts=layouts, costs__train_layouts=layouts)
    assert raised.value.code == "too_large"


def test_layouts_are_sorted_in_the_canonical_form() -> None:
    layouts = [layout("b", 2, linear(1, 2)), layout("a", 2, linear(1, 2))]
    one = problem(costs__rollout_layouts=layouts).sorted()
    assert [each.id for each in one.costs.rollout_layouts] == ["a", "b"]
    assert one.sorted() == one


def test_one_gpu_a_pool_is_a_split() -> None:
    one = problem(
        cluster__gpus=2,
        costs__rollout_layouts=[layout("r", 1, linear(10, 400))],
        costs__train_layouts=[layout("t", 1, linear(10, 300))],
    )
    split = best_split(one)
    assert split is not None
    assert (split.rollout_gpus, split.train_gpus) == (1, 1)


def test_work_that_does_not_divide_takes_the_smallest_rollout_pool() -> None:
    one = problem(
        costs__rollout_layouts=[layout("r", 1, linear(10, 0))], costs__train_layouts=[layout("t", 1, linear(10, 0))]
    )
    split = best_split(one)
    assert split is not None
    assert (split.rollout_gpus, split.train_gpus) == (1, 7)


def test_what_may_be_stale_decides_the_split() -> None:
    # alpha 0, one-GPU replicas, work 100 and 1600 on 10 GPUs: on-policy 100/g + 1600/(10-g) is least at g = 2, 250;
    # with a version between them max(100/g, 1600/(10-g)) is least at g = 1, 177.8.
    base = changed(
        cluster__gpus=10,
        cluster__gpus_per_node=10,
        objective="period",
        costs__weight_sync_s=0,
        costs__rollout_layouts=[layout("r", 1, linear(0, 100))],
        costs__train_layouts=[layout("t", 1, linear(0, 1600))],
    )
    splits = [best_split(problem(base, staleness=staleness)) for staleness in (0, 1)]
    assert [split.rollout_gpus for split in splits if split is not None] == [2, 1]


def test_tables_need_not_fall_with_replicas() -> None:
    # Of 1, 2 and 3 rollout replicas the second is fastest, whatever the third takes.
    table = {"kind": "table", "replicas": [1, 2, 3], "time_s": [300.0, 20.0, 400.0]}
    split = best_split(problem(costs__rollout_layouts=rollout(table)))
    assert split is not None
    assert split.rollout_replicas == 2


def test_a_partial_last_node_holds_small_replicas_alone() -> None:
    # 6 GPUs on nodes of 4: a replica of 4 lies on node 0 and none on the two GPUs of node 1.
    one = problem(
        cluster__gpus=6,
        cluster__gpus_per_node=4,
        hot_switch={"rollout_on_train": False, "train_on_rollout": False},
        costs__rollout_layouts=[layout("r", 4, linear(10, 400))],
        costs__train_layouts=[layout("t", 2, linear(10, 300))],
    )
    split = best_split(one)
    assert split is not None
    assert (split.rollout_gpus, split.train_gpus) == (4, 2)


def test_a_seed_draws_one_list_that_is_kept() -> None:
    drawn = {"steps": 5, "responses": DRAWN, "seed": 7}
    one = problem(simulation=drawn).sorted()
    assert one.simulation.drawn is not None
    assert len(one.simulation.drawn.max_response_tokens) == 5
    assert max(one.simulation.drawn.max_response_tokens) <= 2048
    assert np.mean(one.simulation.drawn.work_factor) == pytest.approx(1)
    assert one.sorted() == one
    assert problem(simulation=drawn).sorted() == one
    assert problem(simulation=drawn | {"seed": 8}).sorted().simulation.drawn != one.simulation.drawn


def test_a_list_that_is_kept_is_not_drawn_again_until_what_it_follows_changes() -> None:
    one = problem(simulation={"steps": 2, "responses": DRAWN}).sorted()
    stored = one.model_dump(mode="json", exclude_none=True)
    stored["simulation"]["drawn"]["work_factor"] = [0.5, 1.5]
    kept = validate(BidirlProblem, stored)
    assert workload(kept.simulation, kept.batch)[0].tolist() == [0.5, 1.5]
    stored["simulation"]["seed"] = 3
    again = validate(BidirlProblem, stored)
    assert workload(again.simulation, again.batch)[0].tolist() != [0.5, 1.5]


def test_responses_that_were_met_are_drawn_from() -> None:
    responses = {"distribution": "empirical", "tokens": [10, 20, 4000], "cap": 2048}
    one = problem(simulation={"steps": 50, "responses": responses}, batch__prompt_groups=1)
    _, longest = workload(one.simulation, one.batch)
    assert set(longest.tolist()) <= {10, 20, 2048}


def test_a_long_tail_reaches_the_cap_more_often_than_a_short_one() -> None:
    longest = [
        workload(one.simulation, one.batch)[1].mean()
        for one in (
            problem(simulation={"steps": 20, "responses": DRAWN | {"sigma": sigma}}) for sigma in (0.1, 0.5, 2.0)
        )
    ]
    assert longest[0] < longest[1] < longest[2] == 2048


def test_what_is_listed_stands_beside_what_is_drawn() -> None:
    one = problem(simulation={"steps": 4, "responses": DRAWN, "work_factor": [1, 2]})
    work, longest = workload(one.simulation, one.batch)
    assert work.tolist() == [1, 2, 1, 2]
    assert len(set(longest.tolist()) | {0.0}) > 1


def test_lists_are_cycled_and_by_default_every_step_is_alike() -> None:
    listed = problem(simulation={"steps": 3, "max_response_tokens": [5, 7]})
    assert workload(listed.simulation, listed.batch)[1].tolist() == [5, 7, 5]
    plain = problem(simulation={"steps": 2})
    work, longest = workload(plain.simulation, plain.batch)
    assert (work.tolist(), longest.tolist()) == ([1, 1], [2048, 2048])


def test_the_page_file_is_its_own_canonical_form() -> None:
    assert validate(BidirlProblem, document()).sorted() == validate(BidirlProblem, document())
