"""Relaxations of derived problems, and of several limits at once, tried as they are printed."""

from __future__ import annotations

import copy
import re
from typing import Any

import janus_cases as cases
import pytest
from janus_derived import derived, document

from planner import api
from planner.errors import InfeasibleError
from planner.fields import parse_setting, set_field
from planner.paper import DeriveOptions
from planner.papers.janus.problem import ScalingProblem
from planner.pose import pose

SETTINGS = re.compile(r"--set (\S+=\S+)")
THREE = ("max_attention_instances", "max_expert_instances", "max_total_instances")


def refused(given: dict[str, Any]) -> InfeasibleError:
    with pytest.raises(InfeasibleError) as caught:
        api.solve(given)
    return caught.value


def changed(given: dict[str, Any], *settings: str) -> dict[str, Any]:
    """The document after ``--set`` of each, as the command line reads them."""
    made = copy.deepcopy(given)
    for setting in settings:
        set_field(made, *parse_setting(setting))
    return made


def cluster(ranks: int) -> dict[str, Any]:
    return {"num_ranks": ranks, "gpus_per_node": 8, "inter_node": {"bandwidth_bytes_per_s": 50e9, "latency_s": 5e-6}}


def test_limits_that_are_left_out_are_those_of_the_cluster() -> None:
    made = derived(top={"limits": {"max_expert_instances": 9}})
    assert made.limits.model_dump() == dict(zip(THREE, (31, 9, 32), strict=True))
    devices = [{"id": "a", "limits": {"max_total_instances": 12}}, {"id": "b"}]
    made = derived(top={"limits": {"max_expert_instances": 9}}, devices=devices)
    first, second = made.devices
    assert first.limits is not None
    assert first.limits.model_dump() == dict(zip(THREE, (31, 9, 12), strict=True))
    assert second.limits is None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        # 128 experts at one a slot fill 128 instances, and attention takes some: whole nodes of eight are 136.
        (document(slots_per_instance=1), "derive.cluster.num_ranks"),
        # What is stated is relaxed where it is stated.
        (document(top={"limits": {"max_expert_instances": 3}}), "limits.max_expert_instances"),
        (document(top={"limits": {"max_total_instances": 4}}), "limits.max_total_instances"),
        (document(devices=[{"id": "a", "limits": {"max_expert_instances": 3}}]),
         "derive.devices.a.limits.max_expert_instances"),
    ],
)  # fmt: skip
def test_a_derived_problems_relaxation_is_enough_as_it_is_printed(given: dict[str, Any], field: str) -> None:
    error = refused(given)
    assert error.relaxation is not None
    assert error.relaxation.field == field
    assert error.relaxation.enough
    setting = f"{field}={int(float(error.relaxation.value))}"
    assert f"--set {setting} " in error.lines()[-1]
    api.solve(changed(given, setting))
    if error.relaxation.proven:
        step = 8 if field.endswith("num_ranks") else 1
        assert refused(changed(given, f"{field}={int(float(error.relaxation.value)) - step}"))


def test_whole_nodes_more_change_no_price_and_no_pools() -> None:
    """So that ranks for more pools are enough for these pools; in one node they change how many send together."""
    few, many = (pose(document(cluster=cluster(ranks)), DeriveOptions()) for ranks in (16, 64))
    assert isinstance(few.problem, ScalingProblem) and isinstance(many.problem, ScalingProblem)
    for part in ("attention", "moe", "memory", "slots_per_instance"):
        assert getattr(few.problem, part) == getattr(many.problem, part)
    assert few.problem.comm == many.problem.comm.model_copy(update={"priced_ranks": 16})
    assert few.relaxable["limits"] == ("derive.cluster.num_ranks", 0.0)
    assert "limits" not in pose(document(cluster=cluster(8)), DeriveOptions()).relaxable


def test_in_one_node_all_limits_that_are_needed_are_printed() -> None:
    given = document(cluster=cluster(2))
    error = refused(given)
    assert (error.code, error.where) == ("expert_slots", "limits.max_expert_instances")
    assert error.relaxation is not None and not error.relaxation.proven and not error.relaxation.enough
    assert "prices are those of one node of 2 GPUs" in error.message
    settings = SETTINGS.findall(error.message)
    # Four instances hold the experts, and one attention instance has room for the requests.
    assert settings == ["limits.max_total_instances=5", "limits.max_expert_instances=4"]
    refused(changed(given, settings[0]))
    refused(changed(given, settings[1]))
    api.solve(changed(given, *settings))


def test_limits_beyond_the_cluster_are_warned_of() -> None:
    """The settings of one node of two GPUs take five: at its prices. Of four nodes 32 are no more than there are."""

    def said(given: dict[str, Any]) -> list[str]:
        return [each.message for each in api.solve(given).warnings if each.code == "limits_beyond_cluster"]

    settings = ("limits.max_total_instances=5", "limits.max_expert_instances=4")
    [text] = said(changed(document(cluster=cluster(2)), *settings))
    assert "limits allow 5 GPUs, and the cluster has 2" in text
    assert said(document(cluster=cluster(32))) == []
    assert "one node" not in refused(document(top={"limits": {"max_total_instances": 4}})).message


def test_settings_of_a_derived_device_are_printed_where_they_stand() -> None:
    limits = {"max_expert_instances": 4, "max_attention_instances": 1, "max_total_instances": 5}
    given = document(devices=[{"id": "a", "limits": limits}], top={"demand_tokens_per_s": 20000.0})
    error = refused(given)
    settings = SETTINGS.findall(error.message)
    assert len(settings) > 1
    assert {setting.rpartition(".")[0] for setting in settings} == {"derive.devices.a.limits"}
    api.solve(changed(given, *settings))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"limits": {"max_expert_instances": 3, "max_total_instances": 3}}, "expert_slots"),
        ({"limits": {"max_expert_instances": 4, "max_total_instances": 5}, "slo_tpot_s": 0.02}, "tpot_slo"),
        ({"limits": {"max_expert_instances": 4, "max_attention_instances": 3, "max_total_instances": 4},
          "launcher_rules": "vllm_afd"}, "expert_slots"),
        ({"limits": {"max_expert_instances": 5, "max_attention_instances": 3}, "launcher_rules": "vllm_afd"},
         "launcher_rules"),
    ],
)  # fmt: skip
def test_where_one_limit_is_not_enough_all_settings_of_the_named_pools_are_printed(
    changes: dict[str, Any], code: str
) -> None:
    given = cases.j(**changes)
    error = refused(given)
    assert error.code == code
    settings = SETTINGS.findall(error.message)
    assert len(settings) > 1
    assert cases.scaled(changed(given, *settings)).total_instances > 0
    pools = re.search(r"beyond limits (\d+) attention and (\d+) expert", error.message)
    assert pools is not None
    best = cases.scaled(changed(given, *settings))
    assert (best.attention_instances, best.expert_instances) == tuple(map(int, pools.groups()))
