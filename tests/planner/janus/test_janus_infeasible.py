"""Demands that no pools carry: what binds, what is needed, and the least change that is enough."""

from __future__ import annotations

from typing import Any

import janus_cases as cases
import pytest
from janus_oracle import refusal

from planner.errors import InfeasibleError
from planner.papers.janus.engines import solve
from planner.papers.janus.larger_pools import least_raised
from planner.papers.janus.options import options
from planner.papers.janus.search import cheapest
from solvers.report import Limits


def refused(document: cases.Document) -> InfeasibleError:
    with pytest.raises(InfeasibleError) as caught:
        solve(cases.problem_of(document), None, Limits())
    return caught.value


def set_to(document: cases.Document, field: str, value: float) -> cases.Document:
    """The document with one field changed, elements of lists named by their ids."""
    made = cases.merged(document, {})
    inner: Any = made
    *path, last = field.split(".")
    for name in path:
        inner = next(each for each in inner if each["id"] == name) if isinstance(inner, list) else inner[name]
    inner[last] = int(value) if field.rsplit(".", 1)[-1].startswith("max_") else value
    return made


def carried(document: cases.Document) -> bool:
    problem = cases.problem_of(document)
    demands = (
        [problem.demand_tokens_per_s]
        if "demand_tokens_per_s" in document
        else [interval.demand_tokens_per_s for interval in problem.series]
    )
    return all(cheapest(options(problem), demands))


def assert_least(error: InfeasibleError, document: cases.Document) -> None:
    """The relaxation is enough, and a little less is not."""
    assert error.relaxation is not None and error.relaxation.proven and error.relaxation.enough
    field, value = error.relaxation.field, error.relaxation.value
    assert carried(set_to(document, field, value))
    assert not carried(set_to(document, field, value - 1 if "max_" in field else value * (1 - 1e-6)))


def test_an_slo_that_no_pools_reach_names_the_fastest() -> None:
    """J6: the smallest TPOT of all thirty pairs."""
    document = cases.j(slo_tpot_s=0.01)
    error = refused(document)
    assert (error.code, error.where, error.unit, error.exit_code) == ("tpot_slo", "slo_tpot_s", "s", 3)
    assert error.required == pytest.approx(0.01490411, abs=5e-9)
    assert error.available == 0.01
    assert_least(error, document)


def test_memory_names_the_bytes_of_the_busiest_instance_and_of_one_request() -> None:
    """J7: two requests on the busiest of many instances, 10 + 2·1 GB."""
    document = cases.j(slo_tpot_s=0.05, memory={"capacity_bytes": 1.05e10})
    error = refused(document)
    assert (error.code, error.where, error.unit) == ("attention_memory", "memory.capacity_bytes", "bytes")
    assert (error.required, error.available) == (1.2e10, 1.05e10)
    assert "one request takes 1.1e+10 bytes" in error.message
    assert_least(error, document)


def test_weights_above_the_capacity_are_memory_too() -> None:
    document = cases.j(memory={"capacity_bytes": 5e9}, demand_tokens_per_s=1.0)
    error = refused(document)
    # One request on an instance, for so little demand.
    assert (error.code, error.required) == ("attention_memory", 1.1e10)
    assert_least(error, document)


def test_too_few_slots_name_the_instances_that_hold_all_experts() -> None:
    """J8: 3·5 < 16."""
    document = cases.j(limits={"max_expert_instances": 3})
    error = refused(document)
    assert (error.code, error.where) == ("expert_slots", "limits.max_expert_instances")
    assert (error.required, error.available) == (4, 3)
    # Four hold the experts, six make the tokens in time.
    assert error.relaxation is not None and error.relaxation.value == 6
    assert_least(error, document)


def test_no_room_beside_the_experts_is_slots_too() -> None:
    document = cases.j(limits={"max_total_instances": 4})
    error = refused(document)
    assert (error.code, error.where, error.required) == ("expert_slots", "limits.max_total_instances", 5)
    assert error.relaxation is not None and error.relaxation.value == 7
    assert_least(error, document)


def test_slots_that_take_two_limits_are_named_as_not_enough() -> None:
    error = refused(cases.j(limits={"max_expert_instances": 3, "max_total_instances": 3}))
    assert error.code == "expert_slots"
    assert error.relaxation is not None and not error.relaxation.enough and not error.relaxation.proven
    assert "beyond limits 1 attention and 6 expert instances would do" in error.message


def test_pools_that_the_launcher_does_not_start_are_named() -> None:
    document = cases.j(launcher_rules="vllm_afd", limits={"max_attention_instances": 3})
    error = refused(document)
    assert (error.code, error.where) == ("launcher_rules", "limits.max_attention_instances")
    # (6, 6), as without this limit.
    assert (error.required, error.available) == (6, 3)
    assert_least(error, document)


@pytest.mark.parametrize(
    "change",
    [
        {"slo_tpot_s": 0.01},
        {"slo_tpot_s": 0.05, "memory": {"capacity_bytes": 1.05e10}},
        {"demand_tokens_per_s": 60000.0},
        {"demand_tokens_per_s": 30000.0, "limits": {"max_attention_instances": 1, "max_expert_instances": 4}},
    ],
)
def test_what_costs_say_of_themselves_is_said_where_no_pools_carry_the_demand(change: dict[str, Any]) -> None:
    said = "experts are priced 3 times slower in fp8 than in bf16: compare derive.expert_dtype=bf16"
    plain = refused(cases.j(**change))
    assert "note" not in plain.message
    told = refused(cases.merged(cases.j(**change), {"moe": {"cautions": {"narrow_dtype_slower": said}}}))
    assert told.message == f"{plain.message}; note: {said}"
    both = {"moe": {"cautions": {"narrow_dtype_slower": said}}, "attention": {"cautions": {"poor_fit": "far off"}}}
    assert refused(cases.merged(cases.j(**change), both)).message == f"{plain.message}; note: far off; note: {said}"


def test_slots_and_launchers_do_not_depend_on_what_costs_say_of_themselves() -> None:
    cautions = {"moe": {"cautions": {"narrow_dtype_slower": "slow"}}}
    for change in (
        {"limits": {"max_expert_instances": 3}},
        {"launcher_rules": "vllm_afd", "limits": {"max_attention_instances": 3}},
    ):
        assert "note" not in refused(cases.merged(cases.j(**change), cautions)).message


def test_a_batch_past_the_data_has_no_relaxation_where_more_gpus_do_not_help() -> None:
    error = refused(cases.j(demand_tokens_per_s=60000.0))
    assert (error.code, error.where, error.relaxation) == ("batch_limit", "a_max.batch_grid", None)
    assert "64 requests" in error.message


def both_missed() -> cases.Document:
    """Each of the only pools, (1, 4) and (2, 4), takes too long and too much."""
    return cases.j(
        slo_tpot_s=0.022,
        memory={"capacity_bytes": 1.5e10},
        limits={"max_attention_instances": 2, "max_expert_instances": 4, "max_total_instances": 6},
    )


def test_more_of_one_limit_is_named_where_pools_miss_both() -> None:
    document = both_missed()
    # Five instances hold two requests each. Four experts keep 16.5 in flight and are too slow; six, in time, keep 11.2;
    # eight keep fewer than ten.
    document["limits"] |= {"max_attention_instances": 5, "max_total_instances": 24}
    document["memory"]["capacity_bytes"] = 1.2e10
    error = refused(document)
    assert (error.code, error.where) == ("gpu_limit", "limits.max_expert_instances")
    assert (error.required, error.available) == (8, 4)
    assert_least(error, document)


def test_more_than_one_limit_is_named_as_not_enough() -> None:
    document = both_missed()
    document["limits"] = {"max_attention_instances": 1, "max_expert_instances": 4, "max_total_instances": 9}
    error = refused(document)
    assert error.code == "gpu_limit"
    assert error.relaxation is not None and not error.relaxation.enough and not error.relaxation.proven
    # Tokens in time take six experts; they keep 11.2 requests in flight, and five are the most on an instance. Of the
    # limits 1, 4 and 9 it is the first that 3 + 6 exceed most.
    assert "beyond limits 3 attention and 6 expert instances would do" in error.message
    assert (error.where, error.required, error.available) == ("limits.max_attention_instances", 3, 1)


def test_the_limit_raised_least_comes_first() -> None:
    def few(experts: int) -> dict[str, int]:
        return {"max_attention_instances": 8, "max_expert_instances": experts, "max_total_instances": 12}

    problem = cases.problem_of(cases.j(devices=[{"id": "a", "limits": few(3)}, {"id": "b", "limits": few(5)}]))
    # J takes six: twice three, and a fifth more than five.
    assert [(each.place, each.value) for each in least_raised(problem, 1000.0)] == [
        ("devices.b.limits.max_expert_instances", 6),
        ("devices.a.limits.max_expert_instances", 6),
    ]


def test_the_fastest_may_have_one_attention_instance_that_gathers_nothing() -> None:
    document = cases.j(slo_tpot_s=0.01, comm={"gather": {"alpha_s": 1e-2, "beta_s_per_byte": 0}})
    error = refused(document)
    assert error.code == "tpot_slo" and "the fastest are 1 attention and 8 expert instances" in error.message
    assert_least(error, document)


def test_what_all_miss_twice_is_joint() -> None:
    document = both_missed()
    document["slo_tpot_s"] = 1e-4
    error = refused(document)
    assert (error.code, error.required, error.relaxation) == ("joint", None, None)


def test_a_device_names_its_own_capacity() -> None:
    small = {"capacity_bytes": 1.05e10, "attention_fixed_bytes": 1e10, "kv_bytes_per_token": 1000000}
    document = cases.j(
        slo_tpot_s=0.05, memory={"capacity_bytes": 1e9}, devices=[{"id": "a"}, {"id": "b", "memory": small}]
    )
    error = refused(document)
    assert (error.code, error.where) == ("attention_memory", "devices.b.memory.capacity_bytes")
    assert "of device b" in error.message
    assert_least(error, document)


def test_a_device_names_its_own_limits() -> None:
    few = {"max_attention_instances": 8, "max_expert_instances": 3, "max_total_instances": 12}
    document = cases.j(devices=[{"id": "a", "limits": few}])
    error = refused(document)
    assert (error.code, error.where) == ("expert_slots", "devices.a.limits.max_expert_instances")
    assert_least(error, document)


def test_the_reason_is_that_of_looking_at_every_pair() -> None:
    """Against plain enumeration by section 4's order; its relaxations are enough and the least."""
    codes: dict[str, int] = {}
    for seed in range(180):
        document = cases.random_document(seed)
        if carried(document) and document["memory"] is not None:
            document["memory"]["capacity_bytes"] = document["memory"]["attention_fixed_bytes"] * 1.01
        if carried(document):
            continue
        error, reason = refused(document), refusal(document)
        assert error.code == reason.code or (error.code == "gpu_limit" and reason.code in ("batch_limit", "joint")), (
            seed
        )
        if reason.required is not None:
            assert error.required == pytest.approx(reason.required, rel=1e-9), seed
        if error.relaxation is not None and error.relaxation.proven:
            assert_least(error, document)
        codes[error.code] = codes.get(error.code, 0) + 1
    assert set(codes) >= {"tpot_slo", "attention_memory", "expert_slots", "launcher_rules", "batch_limit", "gpu_limit"}


def test_a_series_names_the_first_interval_that_fails_and_what_is_enough_for_all() -> None:
    document = cases.series([100.0, 1400.0, 1500.0], limits={"max_total_instances": 8})
    error = refused(document)
    alone = refused(cases.j(demand_tokens_per_s=1400.0, limits={"max_total_instances": 8}))
    assert (error.code, error.where) == ("tpot_slo", "series.1")
    assert error.required == alone.required
    assert error.relaxation is not None and error.required is not None and error.relaxation.value > error.required
    assert_least(error, document)


def test_a_series_says_where_the_peak_needs_something_else() -> None:
    # 1500 tokens/s miss the SLO on eight GPUs; 40000 are past the batches that the data know on any.
    error = refused(cases.series([1500.0, 40000.0], limits={"max_total_instances": 8}))
    assert (error.code, error.where) == ("tpot_slo", "series.0")
    assert error.relaxation is not None and not error.relaxation.enough and not error.relaxation.proven
