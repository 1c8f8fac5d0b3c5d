"""Plans of every derived example can be asked what if a number that they were derived from were another."""

from __future__ import annotations

import pytest

from planner import api, papers
from planner.plan import Plan
from planner.sensitivity.answers import AtValue
from planner.sensitivity.source import source_of

PATHS = ("derive.memory.reserve_bytes", "derive.cluster.inter_node.bandwidth_bytes_per_s", "derive.links_per_node")


@pytest.fixture(scope="module", params=["derived", "day", "prices"])
def plan(request: pytest.FixtureRequest) -> Plan:
    return api.solve(papers.example("janus", request.param))


@pytest.mark.parametrize("path", PATHS)
def test_the_costs_are_derived_again(plan: Plan, path: str) -> None:
    source = source_of(plan, path)
    assert source.other is None
    assert source.posed.inputs.problem_sha256 == plan.inputs.problem_sha256


def test_a_number_of_the_derived_form_is_set(plan: Plan) -> None:
    """One link of a node in place of eight makes the exchange slower, and nothing cheaper."""
    answer = api.what_if(plan, "derive.links_per_node=1")
    assert isinstance(answer, AtValue)
    assert answer.outcome.objective is None or answer.outcome.objective >= plan.certificate.objective
