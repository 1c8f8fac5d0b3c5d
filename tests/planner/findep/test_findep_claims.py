"""What a plan may not claim: to be the best where a better one was met, or to be faster than its tasks allow."""

from __future__ import annotations

import json
from typing import Any

import pytest
from findep_cases import b, fixed, per_token, problem_of
from schedule_oracle import makespan_s

from planner.api import check, solve
from planner.errors import InfeasibleError
from planner.papers.findep.check import check as check_solution
from planner.papers.findep.solution import FindepSolution
from planner.plan import load_document
from planner.validation import validate


def codes(document: dict[str, Any]) -> set[str]:
    return {violation.code for violation in check(load_document(document, "plan")).violations}


def document_of(problem: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(solve(problem).to_bytes())
    return made


def test_the_plan_of_a_smaller_box_is_not_the_best_of_a_larger_one() -> None:
    """m_a <= 2 gives 1/3 token a second; the box up to 4 holds 0.4, which the check meets by replay."""
    large = document_of(b())
    small = document_of(b(search={"max_m_a": 2}))
    claimed = large | {"solution": small["solution"] | {"free_order_bound": large["solution"]["free_order_bound"]}}
    objective = small["certificate"]["objective"]
    claimed["certificate"] = large["certificate"] | {"objective": objective, "upper_bound": objective}
    claimed["warnings"] = small["warnings"]
    assert "upper_bound" in codes(claimed)
    honest = claimed["certificate"] | {"upper_bound": 0.4, "gap": 0.4 / objective - 1, "status": "feasible"}
    honest["gap"] = (0.4 - objective) / 0.4
    assert codes(claimed | {"certificate": honest}) <= {"warnings"}


def test_a_schedule_that_idles_first_is_not_the_best() -> None:
    late = document_of(fixed(2, 1, 1, 3, 4, 1))
    solution = late["solution"]
    layer = solution["timeline"]["steady"]["layers"][0]
    for name in ("attention", "shared"):
        layer[name] = [start + 100.0 for start in layer[name]]
    for name in ("a2e", "expert", "e2a"):
        layer[name] = [[start + 100.0 for start in starts] for starts in layer[name]]
    solution["makespan_s"] += 100.0
    solution["objective"] = 2 / solution["makespan_s"]
    solution["utilisation"] = {name: share * 28 / 128 for name, share in solution["utilisation"].items()}
    objective = solution["objective"]
    late["certificate"] |= {"objective": objective, "upper_bound": objective}
    assert codes(late) == {"upper_bound"}


@pytest.mark.parametrize("num_layers", [60, 2000])
def test_slack_does_not_add_up_over_layers(num_layers: int) -> None:
    """Page case G3, whose layers end 22 and 23 s apart: every period is cut by just under 1e-6 of the makespan."""
    document = fixed(5, 6, 7, 2, num_layers, 2, search={"max_m_a": 1, "max_r1": 2, "orders": ["AASS"]})
    problem = problem_of(document)
    solution = json.loads(solve(document).to_bytes())["solution"]
    true_s = makespan_s(num_layers, 2, 1, "AASS", (5.0, 6.0, 7.0, 2.0, 7.0))
    assert solution["makespan_s"] == pytest.approx(true_s, rel=1e-12)
    steady = solution["timeline"]["steady"]
    saved_s = 0.9e-6 * true_s
    steady["period_s"] -= saved_s
    cycles = (num_layers - len(solution["timeline"]["prologue"]) - 1) // steady["cycle_layers"]
    solution["makespan_s"] -= cycles * saved_s
    found = {violation.code for violation in check_solution(problem, validate(FindepSolution, solution))}
    assert "makespan_mismatch" in found


def test_a_table_that_falls_by_decades_is_priced_alike_everywhere() -> None:
    """m_e h = 49 (1/49) is a rounding below a point of the table, where a slope from the point before cancels."""
    split = {
        "attention_gpus": 1,
        "expert_gpus": 1,
        "a2e": {"tokens": [0.5, 1.0, 2.0], "times_s": [1e3, 1e-6, 1e3]},
        "e2a": per_token(1.0),
    }
    search = {"max_m_a": 1, "max_r1": 1, "max_r2": 1}
    plan = solve(b(num_experts=49, top_k=1, splits=[split], search=search))
    assert not check(plan).violations


@pytest.mark.parametrize("pools", [(2, 3), (3, 2)])
def test_a_relaxation_that_is_not_enough_is_not_named(pools: tuple[int, int]) -> None:
    split = {"attention_gpus": pools[0], "expert_gpus": pools[1], "a2e": per_token(1.0)}
    with pytest.raises(InfeasibleError) as caught:
        solve(b(launcher_rules="vllm_afd", splits=[split], search={"max_r1": 1}))
    assert (caught.value.code, caught.value.relaxation) == ("launcher_rules", None)
