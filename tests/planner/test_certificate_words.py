"""The headline says how far to trust its numbers, and quotes no error for what it is not the error of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner import api
from planner.plan import Plan
from planner.reports.terminal import certificate_words

PLANS = Path(__file__).resolve().parents[2] / "plans"


@pytest.fixture(scope="module")
def derived() -> Plan:
    return api.load(str(PLANS / "findep" / "qwen3-235b-prefill-h200.plan.json"))


def with_modelled(plan: Plan, share: float) -> Plan:
    return replace(plan, sources={"measured": 1.0 - share, "interpolated": 0.0, "modelled": share, "stated": 0.0})


def test_the_error_between_rows_comes_with_the_share_that_it_does_not_cover(derived: Plan) -> None:
    words = certificate_words(with_modelled(derived, 0.54))
    assert words.endswith(" in the median between its rows; 54.00 % of the time is modelled, maybe further off")


def test_a_plan_of_rows_alone_has_only_their_error(derived: Plan) -> None:
    assert certificate_words(with_modelled(derived, 0.009)).endswith(" in the median between its rows")


def test_an_unknown_error_and_stated_costs_say_no_more(derived: Plan) -> None:
    assert certificate_words(replace(derived, cost_error=None)).endswith("this table, whose own error is not known")
    stated = api.load(str(PLANS / "findep" / "explicit-two-orders.plan.json"))
    assert certificate_words(stated) == "proved optimal under these costs"
