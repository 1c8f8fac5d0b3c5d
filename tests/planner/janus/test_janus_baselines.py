"""The baselines are the page's, those of brute force on random problems, and accepted by the check."""

from __future__ import annotations

import math
import random
from typing import Any

import janus_mutations as mutations
import janus_oracle as oracle
import pytest

from planner.paper import Baseline
from planner.papers.janus import rules
from planner.papers.janus.baselines import baselines
from planner.papers.janus.check import check
from planner.papers.janus.engines import solve
from planner.papers.janus.problem import JanusProblem, SizingProblem
from planner.papers.janus.solution import JanusSolution, ScalingSolution
from planner.validation import validate
from solvers.report import Limits

Document = dict[str, Any]
TOLD = {"fixed_ratio": [1, 3]} | mutations.ONE_POOL


def found(document: Document) -> dict[str, Baseline[JanusSolution]]:
    """The baselines by name, each solution of them checked."""
    problem = validate(JanusProblem, document)
    every = baselines(problem, Limits())
    for baseline in every:
        assert baseline.feasible == (baseline.objective is not None) or baseline.name == "monolithic"
        if baseline.solution is not None:
            assert check(problem, baseline.solution) == [], baseline
    return {baseline.name: baseline for baseline in every}


def test_the_pages_baselines_of_j() -> None:
    by_name = found(oracle.example() | {"baselines": TOLD})
    assert list(by_name) == ["monolithic", "megascale", "fixed_ratio"]
    # 2 of 16 experts on each of 8 GPUs, both active: 10 (0.2 + 2 x 0.5 + 0.1 + 0.3) ms. On 4 it were 26 ms.
    assert (by_name["monolithic"].objective, by_name["monolithic"].note) == (8.0, "8 GPUs in one pool, TPOT 16 ms")
    assert by_name["monolithic"].solution is None
    assert by_name["megascale"].objective == 7.0
    assert by_name["fixed_ratio"].objective == 8.0
    for name, pools in (("megascale", (1, 6)), ("fixed_ratio", (2, 6))):
        solution = by_name[name].solution
        assert isinstance(solution, ScalingSolution)
        assert (solution.attention_instances, solution.expert_instances) == pools
        assert not solution.cheapest


def test_what_the_problem_does_not_describe_is_left_out() -> None:
    assert list(found(oracle.example())) == ["megascale"]


def test_on_fewer_gpus_the_one_pool_misses_the_slo() -> None:
    told = {"monolithic": mutations.ONE_POOL["monolithic"] | {"allowed_gpus": [2, 4]}}
    baseline = found(oracle.example() | {"baselines": told})["monolithic"]
    assert (baseline.objective, baseline.feasible) == (None, False)
    assert baseline.note == "none of the allowed numbers, up to 4 GPUs, carries 600 tokens/s"


def test_one_pool_needs_memory_for_its_experts_too() -> None:
    # 8 GPUs hold 2 experts of 4 GB beside 10 GB and the 1 GB of each of two requests: 20 GB.
    document = oracle.example() | {"baselines": mutations.ONE_POOL}
    document["memory"]["capacity_bytes"] = 2e10
    assert found(document)["monolithic"].objective == 8.0
    document["memory"]["capacity_bytes"] = 1.99e10
    assert found(document)["monolithic"].objective == 16.0


def test_a_ratio_is_the_same_in_larger_numbers() -> None:
    # (2, 6) is k = 2 of 1:3 and of 4:12.
    for ratio in ([1, 3], [4, 12]):
        baseline = found(oracle.example() | {"baselines": {"fixed_ratio": ratio}})["fixed_ratio"]
        assert isinstance(baseline.solution, ScalingSolution)
        assert (baseline.solution.attention_instances, baseline.solution.expert_instances) == (2, 6)


def test_memory_passes_within_a_billionth_for_one_pool_as_for_two() -> None:
    # 20 GB as above, a byte of them missing: 5e-11.
    document = oracle.example() | {"baselines": mutations.ONE_POOL}
    document["memory"]["capacity_bytes"] = 2e10 - 1
    assert found(document)["monolithic"].objective == 8.0
    assert oracle.one_pool(document) == (8, pytest.approx(0.016))
    document["memory"]["capacity_bytes"] = 2e10 - 100
    assert found(document)["monolithic"].objective == 16.0


def test_a_ratio_that_no_allowed_pools_have_is_infeasible() -> None:
    baseline = found(oracle.example() | {"baselines": {"fixed_ratio": [9, 1]}})["fixed_ratio"]
    assert (baseline.objective, baseline.feasible) == (None, False)
    assert "9:1" in baseline.note


def test_prices_are_the_objective_of_baselines_too() -> None:
    document = oracle.example() | {"baselines": TOLD}
    document["prices"] = {"attention_per_hour": 2.0, "expert_per_hour": 2.0}
    assert {name: each.objective for name, each in found(document).items()} == {
        "monolithic": 16.0,
        "megascale": 14.0,
        "fixed_ratio": 16.0,
    }
    document["prices"] = {"attention_per_hour": 2.0, "expert_per_hour": 1.0}
    by_name = found(document)
    assert by_name["monolithic"].objective is None
    assert "no price of a GPU that does both" in by_name["monolithic"].note
    assert by_name["megascale"].objective == 8.0
    assert by_name["fixed_ratio"].objective == 10.0


def test_baselines_of_a_series() -> None:
    # The pools of 1500 tokens a second, (2, 8), for three hours; the plan takes 22 GPU-hours.
    by_name = found(mutations.series() | {"baselines": mutations.ONE_POOL})
    assert list(by_name) == ["monolithic", "megascale", "peak"]
    assert by_name["monolithic"].objective == 24.0
    assert by_name["peak"].objective == 30.0
    # Balance asks for one attention instance beside any number of experts, and that is too slow at the peak.
    assert not by_name["megascale"].feasible
    assert "1500 tokens/s" in by_name["megascale"].note
    lower = mutations.series()
    lower["series"] = lower["series"][:2]
    assert found(lower)["megascale"].objective == 12.0
    assert found(lower | {"baselines": {"fixed_ratio": [1, 3]}})["fixed_ratio"].objective == 16.0


def test_balance_is_not_looked_for_among_too_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_PAIRS", 10)
    baseline = found(oracle.example())["megascale"]
    assert (baseline.objective, baseline.feasible) == (None, False)
    assert baseline.note == "not tried: balance is looked for among 10 pairs of pools at most"


def test_baselines_are_those_of_brute_force_and_never_below_the_plan() -> None:
    agreed = {"monolithic": 0, "megascale": 0, "fixed_ratio": 0}
    for seed in range(100):
        draw = random.Random(seed)
        document = oracle.random_problem(draw)
        ratio = [draw.randint(1, 2), draw.randint(1, 3)]
        told = {"allowed_gpus": [1, 2, 4, 8], "comm_s": 1e-4, "expert_bytes": 1.0}
        document["baselines"] = {"monolithic": told, "fixed_ratio": ratio}
        by_name = found(document)
        ranked = oracle.carriers(document)
        expected = {"megascale": oracle.megascale(document), "fixed_ratio": oracle.in_ratio(document, *ratio)}
        for name, pools in expected.items():
            baseline = by_name[name]
            assert baseline.feasible == (pools is not None), (seed, name)
            if pools is None:
                continue
            solution = baseline.solution
            assert isinstance(solution, ScalingSolution)
            chosen = (solution.attention_instances, solution.expert_instances, solution.device)
            assert chosen == (pools.n_a, pools.n_e, pools.device), (seed, name)
            assert solution.objective >= ranked[0].objective * (1 - 1e-9)
            agreed[name] += 1
        one = oracle.one_pool(document)
        assert by_name["monolithic"].feasible == (one is not None), seed
        if one is not None and not document.get("prices") and by_name["monolithic"].objective is not None:
            assert by_name["monolithic"].objective == one[0], seed
            agreed["monolithic"] += 1
    assert min(agreed.values()) > 15, agreed


def test_traced_layers_are_no_part_of_the_rules() -> None:
    document = mutations.traced()
    problem = validate(JanusProblem, document)
    assert isinstance(problem, SizingProblem)
    baseline = found(document)["megascale"]
    assert isinstance(baseline.solution, ScalingSolution)
    assert baseline.solution.expert_maps == ()


def test_placements_in_order_and_by_the_papers_search() -> None:
    # J11: dealt in order, copies 0 1 1 2 3 4 give [0, 1, 3] and [1, 2, 4]: 5 and 5 + 2.
    by_name = found(mutations.placement())
    assert list(by_name) == ["in_order", "paper"]
    assert by_name["in_order"].objective == 7.0
    assert by_name["paper"].objective == 6.0


def test_a_placement_without_the_slots_has_no_baselines_to_show() -> None:
    by_name = found(mutations.placement() | {"slots_per_instance": 2})
    assert [each.feasible for each in by_name.values()] == [False, False]


@pytest.mark.parametrize("seed", range(5))
def test_the_plan_of_a_series_is_not_above_its_baselines(seed: int) -> None:
    document = mutations.series()
    draw = random.Random(seed)
    document["series"] = [
        {"start_s": 900.0 * place, "duration_s": 900.0, "demand_tokens_per_s": draw.uniform(0, 1200)}
        for place in range(12)
    ]
    plan, _ = solve(validate(JanusProblem, document), None, Limits())
    peak = found(document)["peak"]
    assert peak.objective is not None
    assert plan.objective <= peak.objective
    assert math.isclose(getattr(plan, "gpu_hours_peak"), peak.objective)  # noqa: B009
