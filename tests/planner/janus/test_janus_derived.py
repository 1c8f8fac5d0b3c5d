"""The derived form of Janus: what it is told, what it refuses, and the explicit problem that it becomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from janus_derived import derivation, derived, document, refused

from planner.documents import digest
from planner.envelope import dump_model
from planner.errors import BadInputError
from planner.papers.janus import model
from planner.papers.janus.costs import ActivatedBound, TwoPhase
from planner.papers.janus.derived import JanusDerivedProblem
from planner.papers.janus.options import options
from planner.papers.janus.problem import ScalingProblem, SeriesProblem
from planner.validation import validate
from profiles.library import load

TRACES = Path(__file__).parents[2] / "data" / "traces"


def test_a_problem_gets_sizes_and_limits_from_its_model_and_cluster() -> None:
    made = derived()
    assert isinstance(made, ScalingProblem)
    assert (made.num_layers, made.num_experts, made.top_k) == (94, 128, 8)
    assert made.limits.model_dump() == {
        "max_attention_instances": 31, "max_expert_instances": 31, "max_total_instances": 32,
    }  # fmt: skip
    assert (made.slo_tpot_s, made.demand_tokens_per_s, made.context_tokens) == (0.05, 2000.0, 1000.0)


def test_the_batch_grid_is_powers_of_two_past_four_times_what_the_slo_allows() -> None:
    small, large = derived().a_max, derived(top={"demand_tokens_per_s": 1e7}).a_max
    assert isinstance(small, ActivatedBound)
    assert small.kind == "binomial_bound"
    assert small.batch_grid == tuple(2**power for power in range(21))
    # 4 x 1e7 tokens/s x 50 ms are 2,000,000 requests.
    assert large.batch_grid[-1] == 2**21


def test_what_is_stated_stays_as_it_is_stated() -> None:
    limits = {"max_attention_instances": 3, "max_expert_instances": 9, "max_total_instances": 10}
    prices = {"attention_per_hour": 1.5, "expert_per_hour": 2.5}
    a_max = {"kind": "printed_bound", "batch_grid": [1, 512]}
    made = derived(
        top={"limits": limits, "prices": prices, "price_unit": "EUR", "a_max": a_max, "launcher_rules": "vllm_afd",
             "notes": {"a": 1}},
        slots_per_instance=40,
    )  # fmt: skip
    assert made.limits.model_dump() == limits
    assert made.prices is not None
    assert (made.prices.model_dump(), made.price_unit) == (prices, "EUR")
    assert made.a_max.model_dump() == {**a_max, "batch_grid": (1, 512)}
    assert (made.launcher_rules, made.notes, made.slots_per_instance) == ("vllm_afd", {"a": 1}, 40)


def test_deriving_twice_gives_the_same_bytes() -> None:
    first, second = derivation(), derivation()
    assert digest(dump_model(first.problem)) == digest(dump_model(second.problem))
    assert first.derive == second.derive


def test_the_account_names_what_was_looked_up_and_how_far_fits_are() -> None:
    made = derivation()
    resolved = made.derive["resolved"]
    assert (made.profile, resolved["model"]["name"]) == ("h200-sxm", "qwen3-235b-a22b")
    fits = resolved["fits"]["own"]
    assert fits["slots_per_instance"] == made.problem.slots_per_instance
    assert fits["attention"]["mape"] < fits["attention"]["worst"]
    assert fits["comm"]["network"]["from"] == "cluster"
    assert json.loads(json.dumps(made.derive))["resolved"] == resolved
    # The profile's own tables state medians of 0.9 to 3 %.
    assert made.cost_error is not None
    assert 0.005 < made.cost_error["median"] < 0.05


# --- devices ------------------------------------------------------------------------------------------------------


def test_each_pair_of_devices_has_the_prices_and_the_memory_of_its_own_sides() -> None:
    devices = [
        {"id": "all", "prices": {"attention_per_hour": 4, "expert_per_hour": 4}},
        {"id": "old", "attention_profile": "h100-sxm", "prices": {"attention_per_hour": 2, "expert_per_hour": 4}},
        {"id": "new", "expert_profile": "b200-sxm", "prices": {"attention_per_hour": 4, "expert_per_hour": 6}},
    ]
    made = derived(devices=devices)
    by_id = {device.id: device for device in made.devices}
    same, old, new = by_id["all"], by_id["old"], by_id["new"]
    assert list(by_id) == ["all", "new", "old"]
    assert (same.attention, same.moe, same.slots_per_instance) == (made.attention, made.moe, made.slots_per_instance)
    # H100 reads at 3.35 TB/s where H200 reads at 4.8, and has 80 GiB in place of 141.
    assert old.attention is not None
    assert old.attention.floor_s > 1.1 * made.attention.floor_s
    assert old.moe == made.moe
    assert old.memory is not None
    assert old.memory.capacity_bytes == 80 * 2**30
    assert old.slots_per_instance == made.slots_per_instance
    assert new.moe is not None
    assert new.moe.per_expert_s < 0.7 * made.moe.per_expert_s
    assert (new.attention, new.slots_per_instance) == (made.attention, (193273528320 - 4 * 10**9) // 3548381184)


def test_one_stated_capacity_holds_for_every_device() -> None:
    made = derived(devices=[{"id": "old", "attention_profile": "h100-sxm"}], memory={"capacity_bytes": 9e10})
    assert made.memory is not None
    assert made.devices[0].memory is not None
    assert {made.memory.capacity_bytes, made.devices[0].memory.capacity_bytes} == {9e10}


def test_a_device_of_an_unknown_profile_is_named() -> None:
    error = refused(devices=[{"id": "x", "attention_profile": "h300"}])
    assert (error.code, error.where) == ("unknown_profile", "derive.devices.x.attention_profile")


# --- series -------------------------------------------------------------------------------------------------------


def series(**top: Any) -> dict[str, Any]:
    return {"task": "series", "demand_tokens_per_s": None, **top}


def test_a_series_is_priced_at_its_largest_demand() -> None:
    intervals = [{"start_s": 0, "duration_s": 60, "demand_tokens_per_s": rate} for rate in (0, 0)]
    intervals[1]["start_s"] = 60
    idle = derived(top=series(series=intervals))
    assert isinstance(idle, SeriesProblem)
    intervals[0]["demand_tokens_per_s"] = 20_000
    busy = derived(top=series(series=intervals))
    assert idle.attention.priced is not None
    assert busy.attention.priced is not None
    assert idle.attention.priced.requests[-1] == 8
    # 20,000 tokens/s x 50 ms are 1,000 requests, more than memory holds beside the weights.
    assert 300 < busy.attention.priced.requests[-1] < 1000


def test_arrivals_tell_the_context_that_attention_is_priced_at() -> None:
    top = series(context_tokens=None, arrivals={"path": "mooncake_conversation_first40.jsonl", "interval_s": 3.0})
    made = derivation(TRACES, top=top).problem
    assert isinstance(made, SeriesProblem)
    assert made.context_tokens == 13482.287
    assert made.attention.priced is not None
    assert made.attention.priced.context_tokens == 13482
    assert made.series == ()
    stated = derivation(TRACES, top={**top, "context_tokens": 500}).problem
    assert isinstance(stated, SeriesProblem)
    assert stated.context_tokens == 500


def test_a_series_needs_demand_and_a_context() -> None:
    assert refused(top=series()).where == "series"
    intervals = [{"start_s": 0, "duration_s": 60, "demand_tokens_per_s": 5}]
    assert refused(top=series(series=intervals, context_tokens=None)).where == "context_tokens"
    error = refused(top=series(arrivals={"path": "none.csv"}))
    assert (error.code, error.where) == ("missing_field", "arrivals.path")


def test_the_derived_placement_task_and_a_missing_task_are_refused() -> None:
    for task in ("placement", None):
        with pytest.raises(BadInputError, match="expected scaling or series"):
            validate(JanusDerivedProblem, document(top={"task": task}))


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({"model": "llama-3.1-8b"}, "out_of_range", "derive.model"),
        ({"model": "deepseek-v3.2"}, "out_of_range", "derive.model"),
        ({"model": "nobody"}, "unknown_model", "derive.model"),
        ({"profile": "h300"}, "unknown_profile", "derive.profile"),
        ({"cluster": {"num_ranks": 1, "gpus_per_node": 8}}, "out_of_range", "derive.cluster"),
        ({"cluster": {"num_ranks": 16, "gpus_per_node": 8}}, "missing_field", "derive.cluster.inter_node"),
        ({"cluster": {"num_ranks": 16, "gpus_per_node": 16}}, "outside_measured_range", "derive.profile"),
        ({"memory": {"capacity_bytes": 5e9}}, "out_of_range", "derive.memory.capacity_bytes"),
        ({"slots_per_instance": 42}, "out_of_range", "derive.slots_per_instance"),
        ({"links_per_node": 9}, "out_of_range", "derive.links_per_node"),
        ({"profile": "a100-sxm", "dtype": "fp8"}, "outside_measured_range", "derive.dtype"),
        ({"profile": "a100-sxm", "expert_dtype": "fp8"}, "outside_measured_range", "derive.expert_dtype"),
        ({"workload": "uniform"}, "outside_measured_range", "derive.workload"),
        ({"extrapolate": "refuse", "model": "deepseek-v3"}, "outside_measured_range", "derive.extrapolate"),
    ],
)
def test_what_cannot_be_priced_is_refused_at_the_field_that_changes_it(
    changes: dict[str, Any], code: str, where: str
) -> None:
    error = refused(**changes)
    assert (error.code, error.where) == (code, where)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"memory": None, "top": {"slo_tpot_s": 0}}, "slo_tpot_s"),
        ({"top": {"demand_tokens_per_s": 0}}, "demand_tokens_per_s"),
        ({"top": {"context_tokens": -1}}, "context_tokens"),
        ({"top": {"context_tokens": True}}, "context_tokens"),
        ({"slots_per_instance": 0}, "derive.slots_per_instance"),
        ({"links_per_node": 0}, "derive.links_per_node"),
        ({"devices": [{"id": "a"}, {"id": "a"}]}, "derive.devices"),
        ({"splits": []}, "derive.splits"),
    ],
)
def test_a_field_out_of_its_bounds_is_named(changes: dict[str, Any], where: str) -> None:
    assert refused(**changes).where == where


def test_without_memory_the_slots_must_be_stated() -> None:
    changed = document()
    changed["derive"]["memory"] = None
    with pytest.raises(BadInputError) as raised:
        validate(JanusDerivedProblem, changed)
    assert (raised.value.code, raised.value.where) == ("missing_field", "derive.slots_per_instance")


# --- between the pools --------------------------------------------------------------------------------------------


def comm(**changes: Any) -> TwoPhase:
    made = derived(**changes).comm
    assert isinstance(made, TwoPhase)
    return made


def test_between_nodes_a_payload_goes_over_the_links_of_a_node() -> None:
    made = comm()
    assert (made.gpus_per_node, made.bytes_per_request) == (8, 4096 * 2.0)
    # One link of each GPU, and network says what one of them takes.
    assert (made.network.alpha_s, made.network.beta_s_per_byte) == (5e-6, 1 / 50e9)
    assert (made.links_per_node, comm(links_per_node=1).links_per_node) == (8, 1)
    assert comm(links_per_node=1).network == made.network
    assert comm(sent_dtype="fp8").bytes_per_request == 4096.0


def test_inside_a_node_steps_are_collectives_of_the_side_that_runs_them() -> None:
    made = comm(devices=[])
    mixed = derived(devices=[{"id": "x", "expert_profile": "b200-sxm"}]).devices[0].comm
    assert isinstance(mixed, TwoPhase)
    assert mixed.gather == made.gather
    assert mixed.reduce != made.reduce
    # NVLink of an H200 carries 450 GB/s one way; an all-gather sends 7/8 of its bytes, an all-reduce twice that.
    for way, times in ((made.gather, 1), (made.multicast, 1), (made.reduce, 2)):
        assert times * 7 / 8 / 450e9 < way.beta_s_per_byte < 2 * times * 7 / 8 / 450e9
        assert 5e-6 < way.alpha_s < 5e-5


def test_a_cluster_of_one_node_sends_inside_it() -> None:
    made = comm(cluster={"num_ranks": 8, "gpus_per_node": 8})
    assert 1 / 450e9 < made.network.beta_s_per_byte < 1 / 50e9
    assert made.network.alpha_s > 1e-6
    # From one GPU to one other.
    assert made.links_per_node == 1


def test_nodes_of_one_gpu_neither_gather_nor_spread() -> None:
    link = {"bandwidth_bytes_per_s": 50e9, "latency_s": 5e-6}
    made = comm(cluster={"num_ranks": 8, "gpus_per_node": 1, "inter_node": link})
    assert {made.gather.alpha_s, made.multicast.alpha_s, made.reduce.alpha_s} == {0.0}
    assert made.network.beta_s_per_byte == 1 / 50e9
    assert made.links_per_node == 1


def test_a_lone_attention_gpu_has_one_link_and_a_second_halves_what_it_sends() -> None:
    [option] = options(derived(top={"demand_tokens_per_s": 20_000.0}))
    batch = np.array([64.0])
    one, two = (model.comm_s(model.pairs_of(option, n_a, 8), batch)[0][0] for n_a in (1, 2))
    # 64 requests of 8,192 bytes there and back at 50 GB/s, then over two links; the second instance gathers first.
    sent_s, gather = 2 * 64 * 8192 / 50e9, comm().gather
    assert one - two == pytest.approx(sent_s / 2 - gather.alpha_s - gather.beta_s_per_byte * 64 * 8192)


# --- one pool -----------------------------------------------------------------------------------------------------


def test_the_baseline_of_one_pool_has_whole_nodes_and_its_own_exchange() -> None:
    told = derived().baselines.monolithic
    assert told is not None
    assert told.allowed_gpus == (8, 16, 24, 32)
    assert told.expert_bytes == 94 * 3 * 4096 * 1536 * 2
    # 2,000 tokens/s x 50 ms on the 8 GPUs that hold the model: 12.5 tokens to 8 experts of 8,192 bytes each, twice an
    # all-to-all of 0.8 MB, which takes 10 to 100 us.
    assert 2e-5 < told.comm_s < 2e-4
    assert derived(baselines={"monolithic": False}).baselines.monolithic is None


def test_one_pool_over_nodes_sends_inside_them_by_rows_and_between_them_over_each_gpus_link() -> None:
    def told(**changes: Any) -> float:
        # DeepSeek-V3 needs two nodes: 654 GB of experts in fp8 are 82 GB on each of 8 GPUs, in bf16 164.
        made = derived(model="deepseek-v3", top={"demand_tokens_per_s": 2000.0, "slo_tpot_s": 0.06}, **changes)
        assert made.baselines.monolithic is not None
        return made.baselines.monolithic.comm_s

    # 2,000 tokens/s x 60 ms on 16 GPUs: 7.5 tokens to 8 experts of 14,336 bytes, 860,160 bytes of each GPU. Half goes
    # to the other node at 50 GB/s after 5 us, half stays in its own; there and back.
    payload = 2000 * 0.06 / 16 * 8 * 7168 * 2
    inside_s = float(load("h200-sxm").collective("all_to_all", payload / 2, 8, extrapolate="roofline").seconds)
    assert told() == pytest.approx(2 * (inside_s + 5e-6 + payload / 2 / 50e9), rel=1e-6)
    # A quarter of the links: two for the eight GPUs.
    slower = told(links_per_node=2)
    assert slower - told() == pytest.approx(2 * 3 * payload / 2 / 50e9, rel=1e-6)


def test_the_baseline_never_has_more_gpus_than_experts() -> None:
    link = {"bandwidth_bytes_per_s": 50e9, "latency_s": 5e-6}
    told = derived(cluster={"num_ranks": 512, "gpus_per_node": 8, "inter_node": link}).baselines.monolithic
    assert told is not None
    assert told.allowed_gpus[-1] == 128
    one_node = derived(cluster={"num_ranks": 6, "gpus_per_node": 8}).baselines.monolithic
    assert one_node is not None
    assert one_node.allowed_gpus == (1, 2, 4, 6)
