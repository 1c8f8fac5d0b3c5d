"""The check refutes every plan that is wrong in one way, by that code alone, and shares no code with the search."""

from __future__ import annotations

from typing import Any

import pytest
from compass_cases import G1, G3, G4, G7, Document, g9, named, problem, solved

from planner.envelope import dump_model
from planner.papers.compass.check import VIOLATIONS, check
from planner.papers.compass.checks.facts import cuts
from planner.papers.compass.problem import CompassProblem
from planner.papers.compass.solution import CompassSolution
from planner.validation import validate

FUSED = {"fused": [{"id": "ring", "time_s": 1.0}]}
PAIR = problem({**G1, **FUSED, "id": "a"}, {**G7, "id": "b"})
"""a: 8 chunks in 8.66 ms; b: 32 chunks in 1.33 ms by its table."""


def plan_of(given: CompassProblem) -> Document:
    """Its plan as a document to spoil."""
    solution = solved(given)
    assert check(given, solution) == []
    return dump_model(solution)


def codes(given: CompassProblem, document: Document) -> list[str]:
    """What the check says, each code once."""
    return list(dict.fromkeys(violation.code for violation in check(given, validate(CompassSolution, document))))


def spoiled(given: CompassProblem, place: int, **changes: Any) -> Document:
    """The plan with some fields of one choice changed, its explanation taken away."""
    document = plan_of(given)
    kept = {"operator_id", "strategy", "degree", "variant", "time_s"}
    choice = {name: value for name, value in document["choices"][place].items() if name in kept}
    document["choices"] = list(document["choices"])
    document["choices"][place] = choice | changes
    return document


def other_choice(place: int, strategy: str, degree: int, time_s: float, total_s: float) -> Document:
    """The plan of PAIR with a choice that is legal and worse, and a total to match."""
    document = spoiled(PAIR, place, strategy=strategy, degree=degree, time_s=time_s)
    document["metrics"]["total_time_s"] = total_s
    return document


def without_first() -> Document:
    document = plan_of(PAIR)
    return document | {"choices": document["choices"][1:]}


def doubled() -> Document:
    document = plan_of(PAIR)
    return document | {"choices": [document["choices"][0], *document["choices"]]}


def stranger() -> Document:
    document = plan_of(PAIR)
    return document | {"choices": [*document["choices"], document["choices"][0] | {"operator_id": "c"}]}


def reversed_() -> Document:
    document = plan_of(PAIR)
    return document | {"choices": document["choices"][::-1]}


def metric(name: str) -> Document:
    document = plan_of(PAIR)
    document["metrics"][name] *= 1 + 1e-8
    return document


WRONG = {
    "missing_operator": without_first,
    "duplicate_operator": doubled,
    "unknown_operator": stranger,
    "unknown_strategy": lambda: spoiled(PAIR, 0, strategy="overlap"),
    "illegal_degree": lambda: spoiled(PAIR, 0, degree=7),
    "illegal_variant": lambda: spoiled(PAIR, 0, strategy="intra_fusion", degree=1, variant="double"),
    "choice_form": reversed_,
    "choice_time": lambda: spoiled(PAIR, 0, time_s=0.00865),
    "choice": lambda: other_choice(0, "sequential", 1, 0.01006, 0.01006 + 0.00133),
    "metric_total": lambda: metric("total_time_s"),
    "metric_sequential_total": lambda: metric("sequential_total_time_s"),
}


@pytest.mark.parametrize("code", WRONG)
def test_a_plan_that_is_wrong_in_one_way_is_refuted_by_that_code_alone(code: str) -> None:
    assert codes(PAIR, WRONG[code]()) == [code]


def test_every_code_is_provoked_here() -> None:
    assert set(WRONG) | {"strategy_not_allowed", "launcher_switch", "explanation"} == set(VIOLATIONS)


def test_a_strategy_that_is_not_allowed_is_refuted() -> None:
    given = problem({**G1, "allowed_strategies": ["inter_decom"]})
    document = spoiled(given, 0, strategy="sequential", degree=1, time_s=0.01006)
    assert codes(given, document) == ["strategy_not_allowed"]


@pytest.mark.parametrize(
    "changes",
    [
        {"strategy": "sequential", "degree": 8},
        {"strategy": "intra_fusion", "degree": 8, "variant": "ring"},
        {"strategy": "intra_fusion", "degree": 1},
        {"variant": "ring"},
    ],
)
def test_degree_and_variant_go_with_their_strategies(changes: Document) -> None:
    assert codes(PAIR, spoiled(PAIR, 0, **changes)) == ["choice_form"]


@pytest.mark.parametrize(
    ("place", "degree", "said"),
    [(0, 5, "divides split_extent / split_multiple = 64"), (0, 128, "= 64"), (1, 64, "not in its inter_decom_table")],
)
def test_an_illegal_degree_says_what_would_be_legal(place: int, degree: int, said: str) -> None:
    violations = check(PAIR, validate(CompassSolution, spoiled(PAIR, place, degree=degree)))
    assert [violation.code for violation in violations] == ["illegal_degree"]
    assert said in violations[0].message
    assert violations[0].where == f"choices.{place}.degree"


def test_a_degree_that_the_launcher_cannot_start_is_refuted() -> None:
    ring = named("qkv_fprop", "ag_gemm", 3.0, 8, 2.0)
    ring["inter_decom_table"].append({"degree": 16, "time_s": 1.0})
    given = problem(ring, launcher_rules="transformer_engine")
    document = spoiled(given, 0, degree=16, time_s=1.0)
    violations = check(given, validate(CompassSolution, document))
    assert [violation.code for violation in violations] == ["illegal_degree"]
    assert "transformer_engine cannot start degree 16 with tp_size 8" in violations[0].message


def test_fused_kernels_are_no_variant_for_transformer_engine() -> None:
    ring = {**named("qkv_fprop", "ag_gemm", 3.0, 8, 2.0), **FUSED}
    given = problem(ring, launcher_rules="transformer_engine")
    document = spoiled(given, 0, strategy="intra_fusion", degree=1, variant="ring", time_s=1.0)
    assert codes(given, document) == ["illegal_variant"]


def test_one_switch_for_two_is_on_or_off_for_both() -> None:
    given = g9((1, 2))
    document = spoiled(given, 1, strategy="sequential", degree=1, time_s=0.0003)
    document["metrics"]["total_time_s"] = 0.0003 + 2 * 0.0008
    assert codes(given, document) == ["launcher_switch"]


def test_a_forward_all_gather_overlaps_only_while_those_of_the_backward_pass_do() -> None:
    names = ("fc2_dgrad", "proj_dgrad", "qkv_fprop")
    given = problem(*(named(name, "ag_gemm", 3.0, 8, 2.0) for name in names), launcher_rules="transformer_engine")
    document = spoiled(given, 0, strategy="sequential", degree=1, time_s=3.0)
    document["choices"][1] = document["choices"][0] | {"operator_id": "proj_dgrad"}
    document["metrics"]["total_time_s"] = 8.0
    assert codes(given, document) == ["launcher_switch"]
    document["choices"] = [document["choices"][0] | {"operator_id": name} for name in names]
    document["metrics"]["total_time_s"] = 9.0
    assert codes(given, document) == ["choice"], "all off is legal, and worse than all on"


def test_the_switch_of_a_tie_is_off() -> None:
    given = g9((1, 1))
    document = spoiled(given, 0, strategy="inter_decom", degree=4, time_s=0.0008)
    document["choices"][1] = {"operator_id": "proj_fprop", "strategy": "inter_decom", "degree": 2, "time_s": 0.0005}
    assert codes(given, document) == ["choice"]


def test_of_tied_degrees_only_the_smallest_is_the_choice() -> None:
    given = problem(G4)
    assert codes(given, spoiled(given, 0, degree=4)) == ["choice"]


def test_a_plan_that_names_its_rule_may_be_worse_than_the_best() -> None:
    document = other_choice(0, "sequential", 1, 0.01006, 0.01006 + 0.00133)
    assert codes(PAIR, document | {"rule": "sequential"}) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"bound": "gemm"}, "bound"),
        ({"bound": "table"}, "bound"),
        ({"d_star": 7.9}, "d_star"),
        ({"d_star": 0.5}, "d_star"),
        ({"crossing": 8.1}, "crossing"),
        ({"crossing": -8.0}, "crossing"),
        ({"runner_up": {"strategy": "inter_decom", "degree": 32, "time_s": 0.00458}}, "runner_up"),
        ({"runner_up": {"strategy": "inter_decom", "degree": 4, "time_s": 0.003}}, "runner_up"),
        ({"runner_up": {"strategy": "inter_decom", "degree": 8, "time_s": 0.00297}}, "runner_up"),
        ({"runner_up": {"strategy": "intra_fusion", "degree": 1, "variant": "x", "time_s": 1.0}}, "runner_up"),
    ],
)
def test_an_explanation_that_is_not_true_is_refuted(changes: Document, field: str) -> None:
    """G3 with a collective 1 % slower beside the GEMM: the optimum is where the curves cross, at 580 / 75.8 = 7.65."""
    given = problem({**G3, "contention": {"comm": 1.01, "gemm": 1.0}})
    document = plan_of(given)
    document["choices"][0].update(changes)
    violations = check(given, validate(CompassSolution, document))
    assert [(violation.code, violation.where) for violation in violations] == [("explanation", f"choices.0.{field}")]


def test_divisors_by_prime_factors_are_those_of_a_loop() -> None:
    for number in (1, 2, 97, 360, 1024, 9409, 30030):
        for most in (1, 5, 100, 10**9):
            assert list(cuts(number, most)) == [d for d in range(2, min(number, most) + 1) if number % d == 0]


RUNNERS: dict[str, Document] = {
    "sequential": {"degree": 1, "time_s": 0.01006},
    "inter_decom": {"degree": 4, "time_s": 0.00871},
    "intra_fusion": {"degree": 1, "variant": "ring", "time_s": 0.009},
}
"""The runner-up of G1 by what else it may do, in turn; its choice is 8 chunks in 8.66 ms."""


@pytest.mark.parametrize("strategy", RUNNERS)
@pytest.mark.parametrize(
    "changes", [{"degree": 0}, {"degree": 2}, {"variant": "other"}, {"time_s": 0.5}], ids=["0", "2", "variant", "time"]
)
def test_a_runner_up_of_every_strategy_is_one_that_there_is(strategy: str, changes: Document) -> None:
    table = [{"degree": 8, "time_s": 0.00866}]
    given = problem(
        G1
        | {
            "sequential": {"inter_decom_table": table},
            "inter_decom": {},
            "intra_fusion": {"inter_decom_table": table, "fused": [{"id": "ring", "time_s": 0.009}]},
        }[strategy]
    )
    document = plan_of(given)
    runner_up = {"strategy": strategy, **RUNNERS[strategy]}
    assert document["choices"][0]["runner_up"] == pytest.approx(runner_up)
    document["choices"][0]["runner_up"] = runner_up | changes
    assert codes(given, document) == ["explanation"]
