"""Memory of expert instances: what their slots fill, and pools whose slots do not fit."""

from __future__ import annotations

from typing import Any

import janus_derived
import pytest
from janus_cases import j, problem_of, scaled

from planner.errors import BadInputError, InfeasibleError
from planner.papers.janus import presentation
from planner.papers.janus.cautions import warnings
from planner.papers.janus.check import check
from planner.papers.janus.engines import METHODS, solve
from solvers.report import Limits


def held(**memory: Any) -> dict[str, Any]:
    """J, whose instances have 5 slots and 80 GB."""
    return j(memory=memory)


def rows(document: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Bytes and capacity of an expert instance by cause."""
    found = presentation.memory(problem_of(document), scaled(document))
    return {row.cause: (row.bytes, row.capacity_bytes) for row in found if row.where == "expert instance"}


def test_slots_and_reserve_fill_an_expert_instance() -> None:
    told = held(expert_bytes_per_slot=1e10, expert_fixed_bytes={"reserve": 4e9})
    assert rows(told) == {"expert_slots": (5e10, 8e10), "reserve": (4e9, 8e10)}
    own = held(expert_bytes_per_slot=1e10, expert_capacity_bytes=6e10)
    assert rows(own) == {"expert_slots": (5e10, 6e10)}
    assert rows(j()) == {}


def test_a_full_expert_instance_is_warned_of() -> None:
    def told(bytes_per_slot: float) -> list[str]:
        document = held(expert_bytes_per_slot=bytes_per_slot)
        said = warnings(problem_of(document), scaled(document))
        return [each.message for each in said if each.code == "near_capacity"]

    assert told(13.6e9) == []  # 5 x 13.6 of 80 GB are 85 %
    [text] = told(13.7e9)
    assert "the expert instance is planned at 85.6% of its memory" in text


@pytest.mark.parametrize("method", [name for name in METHODS if name in ("search", "enumerate")])
def test_slots_that_do_not_fit_are_no_pools(method: str) -> None:
    document = held(expert_bytes_per_slot=1.5e10, expert_fixed_bytes=6e9)
    with pytest.raises(InfeasibleError) as raised:
        solve(problem_of(document), method, Limits())
    assert (raised.value.code, raised.value.where) == ("expert_memory", "memory.capacity_bytes")
    assert (raised.value.required, raised.value.available) == (8.1e10, 8e10)
    # 80 - 6 GB of 15 GB each.
    assert "4 would fit" in raised.value.message
    relaxation = raised.value.relaxation
    assert relaxation is not None and relaxation.enough and relaxation.proven
    document["memory"]["capacity_bytes"] = float(relaxation.value)
    assert solve(problem_of(document), method, Limits())[0].objective > 0


def test_memory_for_slots_is_not_enough_where_something_else_is_in_the_way() -> None:
    document = held(expert_bytes_per_slot=1.5e10, expert_fixed_bytes=6e9) | {"slo_tpot_s": 1e-6}
    with pytest.raises(InfeasibleError) as raised:
        scaled(document)
    relaxation = raised.value.relaxation
    assert relaxation is not None and not relaxation.enough and not relaxation.proven


@pytest.mark.parametrize(
    ("held_by", "said"),
    [
        ({"expert_bytes_per_slot": 9e10}, "not even one fits"),
        ({"expert_bytes_per_slot": 0.0, "expert_fixed_bytes": 9e10}, "not even the reserve fits"),
    ],
)
def test_slots_of_which_none_fits_are_told_of(held_by: dict[str, float], said: str) -> None:
    with pytest.raises(InfeasibleError, match=said):
        scaled(held(**held_by))


def test_the_field_that_is_too_small_is_named() -> None:
    document = held(expert_bytes_per_slot=1.5e10, expert_capacity_bytes=7e10)
    with pytest.raises(InfeasibleError) as raised:
        scaled(document)
    assert raised.value.where == "memory.expert_capacity_bytes"


def test_only_devices_whose_slots_fit_are_chosen() -> None:
    """The one that lists fewer bytes for its experts is left out, though it is the cheaper one."""
    small = j()["memory"] | {"expert_bytes_per_slot": 1e10, "expert_capacity_bytes": 4e10}
    prices = {"attention_per_hour": 1.0, "expert_per_hour": 1.0}
    document = j(
        prices={"attention_per_hour": 2.0, "expert_per_hour": 2.0},
        devices=[{"id": "large"}, {"id": "small", "memory": small, "prices": prices}],
    )
    solution = scaled(document)
    assert {each.device for each in solution.alternatives} == {"large"}
    assert check(problem_of(document), solution) == []


def test_the_derived_form_states_them() -> None:
    """Qwen3-235B's expert is 94 layers x 3 x 4,096 x 1,536 bf16 numbers, 3.548 GB; beside them the reserve."""
    memory = janus_derived.derived().memory
    assert memory is not None
    assert memory.expert_bytes_per_slot == 94 * 3 * 4096 * 1536 * 2
    assert memory.expert_fixed_bytes == {"reserve": 4e9}
    assert memory.expert_capacity_bytes is None
    device = {"id": "h100 for experts", "expert_profile": "h100-sxm"}
    [made] = janus_derived.derived(devices=[device]).devices
    assert made.memory is not None
    assert made.memory.expert_capacity_bytes == 80 * 2**30
    assert made.memory.capacity_bytes > made.memory.expert_capacity_bytes


@pytest.mark.parametrize("alone", [{"expert_fixed_bytes": 2e11}, {"expert_capacity_bytes": 1.0}])
def test_what_an_expert_instance_has_needs_the_bytes_of_a_slot(alone: dict[str, Any]) -> None:
    with pytest.raises(BadInputError) as caught:
        problem_of(held(**alone))
    assert (caught.value.code, caught.value.where) == ("missing_field", "memory.expert_bytes_per_slot")
