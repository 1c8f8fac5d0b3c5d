"""The check of a sizing accepts right plans and names every fault, each seen on a plan wrong in that way alone."""

from __future__ import annotations

import copy
import random
from typing import Any

import janus_mutations as mutations
import janus_oracle as oracle
import pytest

from planner.papers.janus.check import VIOLATIONS, check
from planner.papers.janus.engines import solve
from planner.papers.janus.problem import JanusProblem
from planner.papers.janus.solution import JanusSolution, ScalingSolution
from planner.validation import validate
from solvers.report import Limits

Document = dict[str, Any]


def codes(problem: Document, solution: Document) -> set[str]:
    """What the check finds."""
    return {violation.code for violation in check(validate(JanusProblem, problem), validate(JanusSolution, solution))}


def test_the_pages_plan_is_accepted() -> None:
    assert codes(oracle.example(), oracle.scaling_solution(oracle.example())) == set()


@pytest.mark.parametrize("name", mutations.SCALING)
def test_a_plan_wrong_in_one_way_is_refused_for_that(name: str) -> None:
    wrong = mutations.SCALING[name]
    problem = oracle.example()
    solution = oracle.scaling_solution(problem)
    wrong.solution(solution)
    wrong.problem(problem)
    assert codes(problem, solution) == wrong.codes


def test_every_code_is_seen_once() -> None:
    tables = (mutations.SCALING, mutations.SERIES, mutations.PLACEMENT, mutations.MAPS)
    seen = {code for table in tables for wrong in table.values() for code in wrong.codes}
    own_tests = {"task_mismatch", "not_the_smallest_fixed_point"}
    assert seen | own_tests == set(VIOLATIONS)


def test_a_solution_of_another_task_is_refused() -> None:
    document = mutations.series()
    assert codes(document, oracle.scaling_solution(oracle.example())) == {"task_mismatch"}


# J3: B = 0.45 + 4.5 a(B) has three roots. In [1, 10] a = 1 + (B - 1) / 18, so B = 4.7 / 0.75; in [40, 80]
# a = 9 + (B - 40) / 80, so B = 38.7 / 0.94375.
THREE_ROOTS = oracle.const(1e-4, 0.0, [1, 10, 20, 40, 80], [1.0, 1.5, 7.0, 9.0, 9.5], 450.0)


def test_of_three_fixed_points_the_smallest_alone_is_accepted() -> None:
    solution = oracle.scaling_solution(THREE_ROOTS)
    assert solution["batch"] == pytest.approx(4.7 / 0.75, rel=1e-12)
    assert codes(THREE_ROOTS, solution) == set()
    largest = 38.7 / 0.94375
    solution |= oracle.at_batch(THREE_ROOTS, 1, 4, largest)
    solution["alternatives"][0] |= {"batch": largest, "tpot_s": largest / 450}
    assert codes(THREE_ROOTS, solution) == {"not_the_smallest_fixed_point"}


def test_one_request_is_a_fixed_point_where_demand_does_not_keep_one() -> None:
    document = oracle.const(1e-3, 5e-4, [1, 100], [4.0, 4.0], 10.0)
    solution = oracle.scaling_solution(document)
    assert (solution["batch"], solution["tpot_s"]) == (1.0, pytest.approx(0.055))
    assert codes(document, solution) == set()


@pytest.mark.parametrize("skipped", [1, 2, 5, 14])
def test_pools_before_the_plan_refute_that_it_is_the_cheapest(skipped: int) -> None:
    # 15 of J's pairs are feasible.
    solution = oracle.scaling_solution(oracle.example(), skipped=skipped)
    assert codes(oracle.example(), solution) == {"not_minimal"}


def test_a_plan_that_does_not_claim_to_be_the_cheapest_may_be_dearer() -> None:
    solution = oracle.scaling_solution(oracle.example(), skipped=2, count=1) | {"cheapest": False}
    assert codes(oracle.example(), solution) == set()


def test_the_slower_of_two_equally_dear_pools_is_refused() -> None:
    # (2, 6) takes 18.7 ms and (1, 7) 21.0 ms, both are 8 GPUs; without the plan of 7 the first is the answer.
    document = oracle.example()
    document["limits"]["max_total_instances"] = 8
    document["memory"]["capacity_bytes"] = 2.25e10
    pools = [(found.n_a, found.n_e) for found in oracle.carriers(document)]
    assert pools[0] == (2, 6)
    document["memory"]["capacity_bytes"] = 8e10
    solution = oracle.scaling_solution(document, skipped=2)
    assert (solution["attention_instances"], solution["expert_instances"]) == (1, 7)
    assert codes(document, solution) == {"not_minimal"}


def test_an_slo_met_exactly_is_met() -> None:
    # J5: the TPOT of (1, 4) as the SLO, and a millionth less.
    document = oracle.example() | {"slo_tpot_s": 0.03066007930580648}
    solution = oracle.scaling_solution(document)
    assert (solution["attention_instances"], solution["expert_instances"]) == (1, 4)
    assert codes(document, solution) == set()
    assert "tpot_slo" in codes(document | {"slo_tpot_s": 0.03066007930580648 * (1 - 1e-6)}, solution)


def test_more_pairs_than_are_tried_are_ruled_out_by_those_that_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.papers.janus.checks.ranking.EVERY", 0)
    document = oracle.example()
    assert codes(document, oracle.scaling_solution(document)) == set()
    assert codes(document, oracle.scaling_solution(document, skipped=1)) == {"not_minimal"}
    # Of one attention instance alone: it does without gathering.
    document["comm"]["gather"]["alpha_s"] = 1e-2
    solution = oracle.scaling_solution(document, skipped=1)
    assert oracle.carriers(document)[0].n_a == 1
    assert codes(document, solution) == {"not_minimal"}


def test_random_plans_of_the_oracle_are_accepted_and_the_next_best_refused() -> None:
    accepted = dearer = 0
    for seed in range(100):
        document = oracle.random_problem(random.Random(seed))
        ranked = oracle.carriers(document)
        if not ranked:
            continue
        assert codes(document, oracle.solution_of(document, ranked[:6])) == set(), seed
        accepted += 1
        costs = [pools.objective for pools in ranked]
        if len(ranked) > 1 and costs[1] > costs[0] * (1 + 1e-6):
            # Where the only cheaper pools meet the SLO exactly, rounding decides, and the check does not.
            found = codes(document, oracle.solution_of(document, ranked[1:7]))
            assert found <= {"not_minimal"}, seed
            dearer += found == {"not_minimal"}
    assert accepted > 50 and dearer > 30, (accepted, dearer)


def test_the_maps_of_traced_layers_are_accepted() -> None:
    document = mutations.traced()
    assert codes(document, mutations.with_maps(document)) == set()


def test_the_planners_maps_of_any_kind_of_routing_are_accepted() -> None:
    document = mutations.traced()
    document["layers"] += [
        {"layer_id": 11, "routing": {"kind": "zipf", "tokens_per_rank": 200, "exponent": 1.2, "seed": 1}},
        {"layer_id": 12, "routing": {"kind": "loads", "expert_load": [float(expert) for expert in range(16)]}},
        {"layer_id": 13, "routing": {"kind": "uniform_expected", "tokens_per_rank": 100}},
    ]
    problem = validate(JanusProblem, document)
    solution, _ = solve(problem, None, Limits())
    assert isinstance(solution, ScalingSolution)
    assert [layer.layer_id for layer in solution.expert_maps[0].layers] == [3, 7, 11, 12, 13]
    assert check(problem, solution) == []


@pytest.mark.parametrize("name", mutations.MAPS)
def test_maps_wrong_in_one_way_are_refused_for_that(name: str) -> None:
    document = mutations.traced()
    solution = copy.deepcopy(mutations.with_maps(document))
    mutations.MAPS[name].solution(solution)
    assert codes(document, solution) == mutations.MAPS[name].codes
