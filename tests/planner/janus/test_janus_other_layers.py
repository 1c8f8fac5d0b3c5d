"""A table read off layers is that of the layers beside it, whoever changes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from janus_cases import j
from janus_experts_cases import mask, traced_document

from planner import api
from planner.beside import Beside
from planner.errors import BadInputError
from planner.fields import parse_setting, set_field
from planner.papers.janus.attach import attach
from planner.papers.janus.costs import ActivatedTable
from planner.papers.janus.problem import JanusProblem, SizingProblem
from planner.sensitivity.answers import AtValue
from planner.validation import validate

TOKENS = ((0, 1), (0, 1), (2, 3), (0, 2), (1, 2))
OTHERS = ((0, 3), (1, 2), (0, 3), (1, 2), (0, 3))


def zipf(exponent: float) -> dict[str, Any]:
    """The page's traced problem, its layer as skewed as is said."""
    routing = {"kind": "zipf", "tokens_per_rank": 1024, "exponent": exponent, "seed": 1}
    layers = [{"layer_id": 3, "routing": routing}]
    return j(a_max={"kind": "routing", "batch_grid": [1, 4, 16, 64]}, layers=layers) | {"paper": "janus"}


def attached(document: dict[str, Any]) -> SizingProblem:
    problem = attach(validate(JanusProblem, document), Beside(".")).problem
    assert isinstance(problem, SizingProblem)
    return problem


def dumped(problem: SizingProblem) -> dict[str, Any]:
    made: dict[str, Any] = problem.model_dump(exclude_none=True)
    return made


@pytest.mark.parametrize("exponent", [0.0, 2.5])
def test_other_layers_are_asked_about_with_their_own_table(exponent: float) -> None:
    answer = api.what_if(api.solve(zipf(0.8)), f"layers.0.routing.exponent={exponent}")
    assert isinstance(answer, AtValue)
    fresh = api.solve(zipf(exponent))
    assert answer.outcome.objective == fresh.solution.objective
    # Even routing keeps more experts busy than routing to few.
    assert fresh.solution.objective == {0.0: 7, 2.5: 5}[exponent]


def test_layers_of_a_plan_that_were_changed_refute_it(tmp_path: Path) -> None:
    plan = api.solve(zipf(0.8))
    document = json.loads(plan.to_bytes())
    document["problem"]["layers"][0]["routing"]["exponent"] = 2.5
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    codes = {violation.code for violation in api.check(str(path)).violations}
    # What is read off the layers now is neither what the plan says of a_max nor what its problem was.
    assert {"problem_sha256", "a_max_mismatch"} <= codes


def test_a_table_beside_its_own_layers_stays_as_it_is() -> None:
    made = attached(traced_document(mask(*TOKENS)))
    assert attached(dumped(made)) == made
    # Its values may be changed: that is another table of the same layers.
    document = dumped(made)
    document["a_max"]["values"] = [[2.0] * len(row) for row in document["a_max"]["values"]]
    again = attached(document).a_max
    assert isinstance(again, ActivatedTable)
    assert set(again.values[0]) == {2.0}


@pytest.mark.parametrize("statistic", ["mean", "p95"])
def test_a_table_of_other_layers_is_read_off_these_at_its_grid_and_sizes(statistic: str) -> None:
    wanted = {"kind": "routing", "batch_grid": [1, 3], "expert_instances": [2, 4], "statistic": statistic}
    document = dumped(attached(traced_document(mask(*TOKENS), a_max=wanted)))
    document["layers"][0]["routing"] = mask(*OTHERS)
    assert attached(document).a_max == attached(traced_document(mask(*OTHERS), a_max=wanted)).a_max


@pytest.mark.parametrize("path", ["demand_tokens_per_s=3000", "slo_tpot_s=0.1", "layers.0.routing.tokens_per_rank=16"])
def test_a_grid_that_nobody_stated_follows_what_is_asked(path: str) -> None:
    """At five times the demand 64.6 requests are in flight, where the plan's grid ends at 64."""
    document = zipf(0.8) | {"a_max": {"kind": "routing"}}
    answer = api.what_if(api.solve(document), path)
    assert isinstance(answer, AtValue)
    set_field(document, *parse_setting(path))
    fresh = api.solve(document)
    assert answer.outcome.objective == fresh.solution.objective
    if path.startswith("demand"):
        assert fresh.solution.objective == 12


def test_a_grid_that_was_stated_stays() -> None:
    wanted = {"kind": "routing", "batch_grid": [1, 2]}
    document = dumped(attached(traced_document(mask(*TOKENS), a_max=wanted)))
    document["demand_tokens_per_s"] *= 1000
    made = attached(document).a_max
    assert isinstance(made, ActivatedTable)
    assert (made.batch_grid, made.usual_grid) == ((1, 2), None)


def test_slots_are_what_a_table_is_read_off_too() -> None:
    wanted = {"kind": "routing", "batch_grid": [1, 2], "expert_instances": [2, 3, 4]}
    document = dumped(attached(traced_document(mask(*TOKENS), a_max=wanted)))
    # One slot of an instance: four hold the experts, so rows of fewer say nothing.
    document["slots_per_instance"] = 1
    made = attached(document).a_max
    assert isinstance(made, ActivatedTable)
    assert made.expert_instances == (4,)
    assert made.values == ((1.0, 1.0),)


def test_a_device_with_other_slots_than_before_has_its_table_read_again() -> None:
    devices = [{"id": "same"}, {"id": "roomy", "slots_per_instance": 4}]
    document = dumped(attached(traced_document(mask(*TOKENS), devices=devices)))
    document["layers"][0]["routing"] = mask(*OTHERS)
    fresh = attached(traced_document(mask(*OTHERS), devices=devices))
    assert attached(document) == fresh


def test_a_table_whose_layers_are_gone_is_refused_and_a_stated_one_is_kept() -> None:
    document = dumped(attached(traced_document(mask(*TOKENS))))
    document["layers"] = []
    with pytest.raises(BadInputError) as caught:
        attached(document)
    assert (caught.value.code, caught.value.where) == ("missing_field", "a_max.layers_sha256")
    del document["a_max"]["layers_sha256"]
    assert isinstance(attached(document).a_max, ActivatedTable)
