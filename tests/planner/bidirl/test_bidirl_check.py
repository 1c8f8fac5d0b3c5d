"""The check refutes every plan that is wrong in one way, by that code alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bidirl_cases import FOUR_B, layout, linear, problem

from planner.envelope import dump_model
from planner.errors import BadInputError
from planner.findings import MAX_LISTED
from planner.papers.bidirl.check import VIOLATIONS, check
from planner.papers.bidirl.engines import solve
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.solution import POLICIES, BidirlSolution
from planner.validation import validate
from solvers.report import Limits

Document = dict[str, Any]

OFF = {"rollout_on_train": False, "train_on_rollout": False}
PAGE = problem()
"""4+4 GPUs in replicas of 2: 210 s and 160 s."""
BESIDE = {"costs__rollout_layouts": [layout("tp2", 2, linear(10, 400)), layout("tp4", 4, linear(10, 200), 73e9)]}


def plan_of(given: BidirlProblem) -> Document:
    """Its plan as a document to spoil."""
    solution = solve(given, None, Limits())[0]
    assert check(given, solution) == []
    return dump_model(solution)


def codes(given: BidirlProblem, document: Document) -> list[str]:
    """What the check says, each code once."""
    return list(dict.fromkeys(violation.code for violation in check(given, validate(BidirlSolution, document))))


def spoiled(path: str, value: object) -> tuple[BidirlProblem, Document]:
    """The page's problem and its plan with another value."""
    document = plan_of(PAGE)
    inner = document
    *parts, last = path.split(".")
    for part in parts:
        inner = inner[part]
    inner[last] = value
    return PAGE, document


def decided(rollout_gpus: int, train_gpus: int, rollout: str = "tp2", train: str = "fsdp2", s: float = 1.0) -> Document:
    """A solution that states a split and its objective alone."""
    return {
        "rollout_gpus": rollout_gpus,
        "train_gpus": train_gpus,
        "rollout_layout": rollout,
        "train_layout": train,
        "objective_s": s,
    }


def one_and(size: int, train: int = 1, **changes: Any) -> BidirlProblem:
    """Layouts of so many GPUs, "r" and "t"."""
    return problem(
        costs__rollout_layouts=[layout("r", size, linear(10, 400))],
        costs__train_layouts=[layout("t", train, linear(10, 300))],
        **changes,
    )


WRONG: dict[str, Callable[[], tuple[BidirlProblem, Document]]] = {
    "unknown_layout": lambda: spoiled("rollout_layout", "tp4"),
    "gpu_budget": lambda: spoiled("train_gpus", 2),
    "split_granularity": lambda: (problem(split_granularity_gpus=4), decided(2, 6)),
    "pool_not_divisible": lambda: (one_and(2, hot_switch=OFF), decided(3, 5, "r", "t")),
    "hot_switch_incompatible": lambda: (one_and(2, cluster__gpus=9), decided(4, 5, "r", "t")),
    "replica_straddles_node": lambda: (
        one_and(1, 4, cluster__gpus=6, cluster__gpus_per_node=4, hot_switch=OFF),
        decided(2, 4, "r", "t"),
    ),
    "memory": lambda: (problem(**BESIDE), decided(4, 4, "tp4")),
    "not_minimal_layout": lambda: (
        problem(layout_policy="minimal", cluster__gpu_memory_bytes=90e9, **BESIDE),
        decided(4, 4, "tp4"),
    ),
    "time_not_in_table": lambda: (
        problem(costs__train_layouts=[layout("fsdp2", 2, {"kind": "table", "replicas": [2], "time_s": [9.0]})]),
        decided(2, 6),
    ),
    "reported_replicas": lambda: spoiled("train_replicas", 4),
    "reported_time": lambda: spoiled("rollout_time_s", 210 * (1 + 2e-9)),
    "reported_objective": lambda: spoiled("objective_s", 209.9),
    "reported_period": lambda: spoiled("period_s", 210.0),
    "reported_lambda": lambda: spoiled("lambda_pipe_groups_per_s", 64 / 160),
    "reported_bound": lambda: spoiled("fractional_bound_s", 185 * (1 + 1e-6)),
    "split_not_best": lambda: (PAGE, decided(6, 2, s=310.0)),
    "fractional_bound_above_objective": lambda: spoiled("fractional_bound_s", 210.1),
    "threshold": lambda: spoiled("thresholds.min_missing_groups", 8),
    "simulation": lambda: spoiled("simulation.no_borrow.makespan_s", 4400 * (1 + 2e-7)),
    "policy_not_best": lambda: spoiled("policy", "no_borrow"),
    "incomplete": lambda: spoiled("fractional_bound_s", None),
}


@pytest.mark.parametrize("code", WRONG)
def test_a_plan_that_is_wrong_in_one_way_is_refuted_by_that_code_alone(code: str) -> None:
    assert codes(*WRONG[code]()) == [code]


def test_every_code_is_provoked_here() -> None:
    assert tuple(WRONG) == VIOLATIONS


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("rollout_gpus", 0, "rollout_gpus"),
        ("rollout_gpus", -4, "rollout_gpus"),
        ("train_gpus", 10**400, "train_gpus"),
        ("train_gpus", 6, "train_gpus"),
        ("thresholds.min_missing_groups", None, "thresholds.min_missing_groups"),
        ("thresholds.min_missing_groups", 10, "thresholds.min_missing_groups"),
        ("thresholds.min_remaining_chunks", 9, "thresholds.min_remaining_chunks"),
        ("thresholds.min_remaining_chunks", 11, "thresholds.min_remaining_chunks"),
        ("simulation.colocated.makespan_s", 4141.0, "simulation.colocated.makespan_s"),
        ("simulation.half_split.step_period_s", 211.0, "simulation.half_split.step_period_s"),
        ("simulation.bidirectional.train_idle_share", 0.001, "simulation.bidirectional.train_idle_share"),
        ("simulation.separated_async.rollout_idle_share", 0.0, "simulation.separated_async.rollout_idle_share"),
        ("simulation.rollout_on_train.train_pool_lent", 19, "simulation.rollout_on_train.train_pool_lent"),
        ("simulation.opportunistic.rollout_pool_lent", 1, "simulation.opportunistic.rollout_pool_lent"),
        ("policy", "bidirectional", "policy"),
        ("policy", "opportunistic", "policy"),
        ("fractional_bound_s", 210.0, "fractional_bound_s"),
        ("fractional_bound_s", -5.0, "fractional_bound_s"),
        ("fractional_bound_s", 185 * (1 - 2e-5), "fractional_bound_s"),
        ("thresholds", None, "thresholds"),
        ("policy", None, "policy"),
        ("simulation", None, "simulation"),
    ],
)
def test_a_wrong_figure_is_refuted_where_it_stands(path: str, value: object, where: str) -> None:
    given, document = spoiled(path, value)
    assert [violation.where for violation in check(given, validate(BidirlSolution, document))] == [where]


def test_a_replay_of_no_policy_is_refuted() -> None:
    _, document = spoiled("simulation.alternating", {"makespan_s": 1.0, "step_period_s": 1.0})
    assert codes(PAGE, document) == ["simulation"]


def test_two_directions_with_the_end_of_one_are_one_too_many() -> None:
    """bidirectional ends with rollout_on_train here, to the digit: the plan names the one of fewer directions."""
    rows = plan_of(PAGE)["simulation"]
    assert rows["bidirectional"]["makespan_s"] == rows["rollout_on_train"]["makespan_s"]
    violations = check(PAGE, validate(BidirlSolution, spoiled("policy", "bidirectional")[1]))
    assert "rollout_on_train" in violations[0].message


def test_a_split_of_one_objective_with_more_gpus_is_not_the_best() -> None:
    """beta 0: every split ties, and the fewest GPUs come first where some may stay idle, else the smallest pool R."""
    free = {
        "costs__rollout_layouts": [layout("r", 1, linear(10, 0))],
        "costs__train_layouts": [layout("t", 1, linear(10, 0))],
    }
    assert codes(problem(allow_idle_gpus=True, **free), decided(1, 1, "r", "t", 10.0)) == []
    assert codes(problem(allow_idle_gpus=True, **free), decided(1, 2, "r", "t", 10.0)) == ["split_not_best"]
    assert codes(problem(**free), decided(1, 7, "r", "t", 10.0)) == []
    assert codes(problem(**free), decided(2, 6, "r", "t", 10.0)) == ["split_not_best"]


def test_of_equal_splits_the_least_sum_of_both_times_comes_first() -> None:
    """210 s of rollout in 4 GPUs either way: the faster of two train layouts is hidden behind it, and still better."""
    given = problem(
        costs__train_layouts=[layout("a", 2, linear(10, 300)), layout("b", 2, linear(10, 200))],
    )
    assert codes(given, decided(4, 4, "tp2", "b", 210.0)) == []
    assert codes(given, decided(4, 4, "tp2", "a", 210.0)) == ["split_not_best"]


def test_of_equal_times_and_gpus_the_smaller_replica_comes_before_the_smaller_pool() -> None:
    given = problem(
        costs__rollout_layouts=[
            layout("r1", 1, {"kind": "table", "replicas": [4], "time_s": [10.0]}),
            layout("r2", 2, {"kind": "table", "replicas": [1], "time_s": [10.0]}),
        ],
        costs__train_layouts=[layout("t", 1, linear(10, 0))],
    )
    assert codes(given, decided(4, 4, "r1", "t", 10.0)) == []
    assert codes(given, decided(2, 6, "r2", "t", 10.0)) == ["split_not_best"]


def test_a_solution_that_names_its_rule_may_be_worse_than_the_best() -> None:
    document = decided(6, 2, s=310.0) | {"rule": "half_split", "policy": "no_borrow"}
    assert codes(PAGE, document) == []
    assert codes(PAGE, document | {"objective_s": 300.0}) == ["reported_objective"], "and may not lie"


def test_gpus_may_stay_idle_only_where_that_is_allowed() -> None:
    assert codes(PAGE, decided(2, 2)) == ["gpu_budget"]
    assert codes(problem(allow_idle_gpus=True), decided(2, 2, s=410.0)) == ["split_not_best"]


def test_no_replica_lies_on_part_of_a_node() -> None:
    """Replicas of 3 in nodes of 4 straddle from anywhere; of 8 they must begin at a node."""
    given = one_and(3, 1, cluster__gpus=12, cluster__gpus_per_node=4, hot_switch=OFF)
    assert codes(given, decided(3, 9, "r", "t")) == ["replica_straddles_node"]
    given = one_and(1, 8, cluster__gpus=18, cluster__gpus_per_node=4, hot_switch=OFF)
    assert codes(given, decided(10, 8, "r", "t")) == ["replica_straddles_node"]


def test_what_is_only_rounding_is_no_violation() -> None:
    for path, value in (("rollout_time_s", 210 * (1 + 1e-12)), ("simulation.no_borrow.makespan_s", 4400 * (1 + 1e-9))):
        assert codes(*spoiled(path, value)) == []


def test_nothing_but_the_split_has_to_be_stated() -> None:
    assert codes(PAGE, decided(4, 4, s=210.0)) == []


def test_a_row_of_the_replay_may_not_get_lost() -> None:
    document = plan_of(PAGE)
    del document["simulation"]["colocated"]
    assert codes(PAGE, document) == ["incomplete"]


def test_thresholds_are_written_where_there_are_none() -> None:
    """7,700 s in repay no backlog of at most 210 s; a file without the key is refused, as it might have been lost."""
    switch = FOUR_B | {"rollout_on_train": {"in_s": 7700, "out_s": 5.59}}
    given = problem(costs__switch=switch)
    document = plan_of(given)
    assert document["thresholds"] == {"min_missing_groups": None, "min_remaining_chunks": 10}
    del document["thresholds"]["min_missing_groups"]
    with pytest.raises(BadInputError, match="min_missing_groups"):
        validate(BidirlSolution, document)


def test_a_policy_that_lends_where_no_backlog_repays_it_is_refuted() -> None:
    """The replay of kind lengths takes its tail for divisible: rollout_on_train ends first, and (5) never holds."""
    tail = {
        "kind": "lengths",
        "prompt_tokens": 1,
        "prefill_s_per_token": 0.0,
        "mean_response_tokens": 100.0,
        "concurrency": 512,
        "step_base_s": 0.1,
        "step_per_sequence_s": 0.0,
    }
    # 512 sequences at once on a replica: every batch takes 2048 steps of 0.1 s on any number of replicas.
    given = problem(costs__rollout_layouts=[layout("tp2", 2, tail)])
    document = plan_of(given)
    rows = document["simulation"]
    assert rows["rollout_on_train"]["makespan_s"] < rows["no_borrow"]["makespan_s"]
    assert (document["thresholds"]["min_missing_groups"], document["policy"]) == (None, "no_borrow")
    assert codes(given, document | {"policy": "rollout_on_train"}) == ["policy_not_best"]


def test_findings_are_listed_up_to_a_limit() -> None:
    _, document = spoiled("policy", "rollout_on_train")
    for number in range(MAX_LISTED + 5):
        document["simulation"][f"policy{number}"] = {"makespan_s": 1.0, "step_period_s": 1.0}
    violations = check(PAGE, validate(BidirlSolution, document))
    assert len(violations) == MAX_LISTED + 1
    assert violations[-1].message == "and 5 more"


def test_every_policy_is_replayed() -> None:
    for policy in POLICIES:
        _, document = spoiled(f"simulation.{policy}.makespan_s", 1.0)
        where = [violation.where for violation in check(PAGE, validate(BidirlSolution, document))]
        assert where == [f"simulation.{policy}.makespan_s"]
