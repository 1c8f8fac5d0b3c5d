"""A field of the explicit form in a derived document is refused with the place where it can be set."""

from __future__ import annotations

from typing import Any

import pytest

from planner import papers
from planner.errors import BadInputError
from planner.paper import DeriveOptions
from planner.pose import pose

EXPLICIT = "plan expand prints the explicit form, where it can be set"


def refused(paper: str, which: str, **changes: Any) -> BadInputError:
    with pytest.raises(BadInputError) as raised:
        pose(papers.example(paper, which) | changes, DeriveOptions())
    return raised.value


@pytest.mark.parametrize(
    ("name", "takes"),
    [("moe", "derive"), ("slots_per_instance", "derive.slots_per_instance"), ("memory", "derive.memory")],
)
def test_a_field_that_derive_replaces(name: str, takes: str) -> None:
    error = refused("janus", "derived", **{name: 1})
    assert (error.code, error.where) == ("unknown_field", name)
    assert error.message == f'unknown field "{name}" of a derived problem: {takes} replaces it; {EXPLICIT}'


def test_other_papers_say_so_too() -> None:
    assert EXPLICIT in refused("findep", "derived", attention={}).message


def test_a_field_of_no_form_is_as_unknown_as_before() -> None:
    assert EXPLICIT not in refused("janus", "derived", mooe=1).message
    assert EXPLICIT not in refused("janus", "derived", derive={"moe": 1}).message


def test_a_field_of_another_task_says_which() -> None:
    error = refused("janus", "day", demand_tokens_per_s=5.0)
    assert error.message == 'unknown field "demand_tokens_per_s"; it goes with task scaling'
