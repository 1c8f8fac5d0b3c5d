"""What simpler rules give: their values on the page's cases, and that no plan is behind them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hiermoe_cases import (
    PAPER_LINKS,
    document,
    golden_1,
    golden_2,
    golden_3,
    golden_6,
    golden_7,
    mask,
    problem_of,
    random_document,
    seeded,
)
from hiermoe_oracle import exchange_s

from planner.paper import Baseline
from planner.papers.hiermoe.baselines import baselines
from planner.papers.hiermoe.certificate import bounds
from planner.papers.hiermoe.check import check
from planner.papers.hiermoe.engines import solve
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.solution import HiermoeSolution
from planner.routing.counts_files import read_counts
from solvers.report import Limits


def found(problem: HiermoeProblem) -> dict[str, Baseline[HiermoeSolution]]:
    return {baseline.name: baseline for baseline in baselines(problem, Limits())}


def test_hierarchy_without_deduplication_is_worse_than_none_on_the_golden_case() -> None:
    # Page golden 3: 9 and 7 with deduplication, 9 and 11 without.
    rules = found(problem_of(golden_3()))
    assert [rules[name].objective for name in ("flat", "h2", "hd1", "hd2")] == [9, 11, 9, 7]
    assert rules["flat"].solution is None
    assert "no deduplication" in rules["h2"].note


def test_rules_that_count_assignments_are_marked_where_the_problem_refuses_their_placement() -> None:
    rules = found(problem_of(golden_3() | {"search": {"dimensions": [2]}}))
    assert not rules["flat"].feasible and rules["flat"].note.endswith("; search.dimensions leaves it out")
    assert rules["h2"].feasible
    # In order, experts 0 and 1 share rank 0, which gets both assignments.
    uneven = document(2, 4, 1, mask([(0, (0,)), (1, (1,))]), levels=(1,)) | {"search": {"max_load_ratio": 1.0}}
    rule = found(problem_of(uneven))["flat"]
    assert not rule.feasible and rule.note.endswith("; layer 0 is above max_load_ratio")


def test_the_papers_constants_give_the_pages_times() -> None:
    # Page golden 6 [ms], uniform expectation: HD1..HD4, flat, H2.
    rules = found(problem_of(golden_6(256, 7168)))
    expected = {"hd1": 31.1250, "hd2": 21.8756, "hd3": 20.8953, "hd4": 21.5926, "flat": 34.1925, "h2": 39.5885}
    for name, time_ms in expected.items():
        assert rules[name].objective == pytest.approx(time_ms / 1e3, abs=1e-7), name


def test_one_swap_reaches_the_first_golden_optimum_and_not_the_second() -> None:
    assert found(problem_of(golden_1()))["one_swap"].objective == 4
    rules = found(problem_of(golden_2()))
    assert rules["one_swap"].objective == 8
    solution = rules["one_swap"].solution
    assert solution is not None
    # Page golden 2: (0,5) comes first of the four swaps that tie.
    assert solution.layers[0].swaps == ((0, 5),)


def test_rules_that_price_dimension_two_need_two_levels_and_rules_of_one_copy_need_no_copies() -> None:
    assert list(found(problem_of(golden_1()))) == ["flat", "hd1", "one_swap", "eplb_hierarchical", "eplb_global"]
    assert list(found(problem_of(golden_7()))) == ["flat", "h2", "hd1", "hd2", "eplb_hierarchical", "eplb_global"]


def test_two_copies_on_a_rank_are_scored_and_marked() -> None:
    # One expert takes nearly all: 2 ranks, 2 experts, 2 redundant slots; EPLB makes 3 copies of expert 0.
    routing = {"kind": "loads", "tokens_per_rank": 50.0, "expert_load": [99.0, 1.0]}
    problem = document(2, 2, 1, routing, redundant_slots=2)
    rule = found(problem_of(problem))["eplb_global"]
    assert (rule.feasible, rule.solution) == (False, None)
    assert rule.objective is not None
    assert "not exportable: 1 copy shares a rank" in rule.note
    allowed = found(problem_of(problem | {"forbid_same_rank_replicas": False}))["eplb_global"]
    assert allowed.feasible
    assert allowed.solution is not None


def test_limits_of_the_problem_are_said_where_a_rule_breaks_them() -> None:
    rules = found(problem_of(golden_3() | {"search": {"dimensions": [1]}}))
    assert (rules["hd2"].feasible, rules["hd1"].feasible) == (False, True)
    assert "search.dimensions" in rules["hd2"].note
    rules = found(problem_of(golden_2() | {"search": {"max_moved_experts": 1}}))
    assert "moves 2 experts, the budget allows 1" in rules["one_swap"].note


@pytest.mark.parametrize("redundant", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_each_has_the_value_of_its_solution_and_none_beats_bound_or_plan(seed: int, redundant: bool) -> None:
    source = seeded(seed)
    written = random_document(source, gpus=2, experts_per_gpu=2, kinds=("mask", "loads"), kappa=True)
    problem = problem_of(written | ({"redundant_slots": 2} if redundant else {}))
    plan, _ = solve(problem, None, Limits())
    (bound, *_) = bounds(problem, plan, False, 1.0)
    for baseline in baselines(problem, Limits()):
        assert baseline.objective is not None
        if baseline.solution is not None:
            assert check(problem, baseline.solution) == []
            assert baseline.solution.objective_s == pytest.approx(baseline.objective, rel=1e-12)
            assert plan.objective_s <= baseline.objective * (1 + 1e-9), baseline.name
            assert bound.value <= baseline.objective * (1 + 1e-9), baseline.name


@pytest.mark.parametrize("seed", range(4))
def test_counting_assignments_agrees_with_a_token_by_token_count(seed: int) -> None:
    written = random_document(seeded(seed), gpus=4, experts_per_gpu=2, kappa=False)
    rules = found(problem_of(written))
    weight = written["objective"]["a2a_multiplier"]
    for name, d in (("flat", 1), ("h2", 2)):
        if name in rules:
            expected = exchange_s(written, written["layers"][0], range(8), d, deduplicated=False)
            assert rules[name].objective == pytest.approx(weight * expected, rel=1e-12)


@pytest.mark.skipif("PLAN_REAL_DATA" not in os.environ, reason="PLAN_REAL_DATA is not set")
def test_real_loads_give_the_times_of_the_page() -> None:
    # Page golden 8: OLMoE, C4, layer 7, G=8, U=[1,2], links and token_bytes of section 6: contiguous t_2 0.473719,
    # longest first 0.471572; t_1 1.035626 and 1.016409.
    path = Path(os.environ["PLAN_REAL_DATA"]) / "moe_routing" / "olmoe_expert_counts_c4.json"
    loads = [float(load) for load in read_counts(path, 64, "here")[1]]
    routing = {"kind": "loads", "tokens_per_rank": 208896 / 8, "expert_load": loads}
    links = {
        "flat": {"latency_s": 2e-4, "bandwidth_bytes_per_s": 2e9},
        "inter": [{"latency_s": 1.5e-4, "bandwidth_bytes_per_s": 2e9}],
        "intra": [{"latency_s": 1e-4, "bandwidth_bytes_per_s": 2e10}],
    }
    problem = problem_of(document(8, 64, 8, routing, levels=(1, 2), costs={"token_bytes": 14336, "links": links}))
    rules = found(problem)
    assert rules["hd2"].objective == pytest.approx(0.473719, abs=5e-7)
    assert rules["hd1"].objective == pytest.approx(1.035626, abs=5e-7)
    plan, _ = solve(problem, None, Limits())
    assert plan.objective_s <= 0.471572
    assert np.isfinite(plan.objective_s)


def test_swapping_beats_hierarchy_alone_on_skewed_routing() -> None:
    # Section 11: signs and order of the paper's claims, on its links: flat > HD1 > HD2, and the plan below one swap.
    routing = {"kind": "zipf", "tokens_per_rank": 32, "exponent": 0.8, "seed": 0}
    links = {"flat": PAPER_LINKS["flat"], "inter": PAPER_LINKS["inter"][:1], "intra": PAPER_LINKS["intra"][:1]}
    problem = problem_of(document(16, 32, 4, routing, levels=(1, 4), costs={"token_bytes": 4096, "links": links}))
    rules = {name: rule.objective or 0.0 for name, rule in found(problem).items()}
    plan, _ = solve(problem, None, Limits())
    assert rules["flat"] > rules["hd1"] > rules["hd2"] >= rules["one_swap"] > plan.objective_s
