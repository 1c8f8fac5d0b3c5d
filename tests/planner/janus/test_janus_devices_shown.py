"""Each pair of devices stands beside the plan with the best it can do, or with what it misses."""

from __future__ import annotations

from typing import Any

from janus_cases import j, problem_of, scaled

from planner.papers.janus.baselines import baselines
from planner.papers.janus.problem import ScalingProblem
from planner.papers.janus.shown.devices import device_tables
from planner.papers.janus.shown.scaling import scaling_view
from planner.view import Table
from solvers.report import Limits

TWO = {"attention_per_hour": 2.0, "expert_per_hour": 2.0}
ONE_POOL = {"monolithic": {"allowed_gpus": [2, 4, 8, 16], "comm_s": 3e-4, "expert_bytes": 4e9}}


def rows(*devices: dict[str, Any], **changes: Any) -> dict[str, tuple[str, ...]]:
    document = j(prices={"attention_per_hour": 1.0, "expert_per_hour": 1.0}, devices=list(devices), **changes)
    problem = problem_of(document)
    assert isinstance(problem, ScalingProblem)
    [table] = device_tables(problem, scaled(document))
    assert table in scaling_view(problem, scaled(document)).sections
    return {row[0]: row[1:] for row in table.rows}


def test_devices_that_lose_are_explained() -> None:
    """J is 1A6E: 7 instances. At twice the price they cost 100 % more; three times slower experts are late."""
    slow = {"per_expert_s": 15e-4, "base_s": 3e-4}
    full = j()["memory"] | {"capacity_bytes": 1.05e10}
    found = rows(
        {"id": "own"},
        {"id": "twice", "prices": TWO},
        {"id": "late", "moe": slow},
        {"id": "full", "memory": full},
        {"id": "small", "slots_per_instance": 1},
    )
    assert list(found) == ["own", "twice", "full", "late", "small"]
    assert found["own"][0] == "1A6E"
    assert found["own"][-1] == "the plan"
    assert found["twice"][0] == "1A6E"
    assert found["twice"][-1] == "100.00 % dearer"
    assert found["late"][1] == "-"
    assert found["late"][-1] == "the fastest, over the SLO of 22 ms"
    assert "an attention instance takes" in found["full"][-1]
    assert found["small"][-1] == "no pools within limits hold all experts"


def test_without_a_choice_there_is_nothing_to_explain() -> None:
    problem = problem_of(j())
    assert isinstance(problem, ScalingProblem)
    assert device_tables(problem, scaled(j())) == ()


def test_the_only_device_gives_one_pool_its_price() -> None:
    """8 GPUs in one pool: at 2 an hour 16. Devices that cost other seconds, or two prices, give none."""

    def price(device: dict[str, Any]) -> float | None:
        document = j(devices=[device], baselines=ONE_POOL)
        return next(each for each in baselines(problem_of(document), Limits()) if each.name == "monolithic").objective

    assert price({"id": "h100", "prices": TWO}) == 16.0
    assert price({"id": "h100", "prices": TWO | {"expert_per_hour": 3.0}}) is None
    assert price({"id": "h100", "prices": TWO, "moe": {"per_expert_s": 1e-4, "base_s": 1e-4}}) is None
    same = {"id": "h100", "prices": TWO, "moe": j()["moe"], "memory": j()["memory"]}
    assert price(same) == 16.0


def test_a_table_is_made_of_words() -> None:
    problem = problem_of(j(devices=[{"id": "a"}, {"id": "b"}]))
    assert isinstance(problem, ScalingProblem)
    [table] = device_tables(problem, scaled(j(devices=[{"id": "a"}, {"id": "b"}])))
    assert isinstance(table, Table)
    assert [row[-1] for row in table.rows] == ["the plan", "as cheap"]
