"""What a derived problem of Janus costs and fills, against hand counts, published sizes and the device's own limits."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from janus_derived import derivation, derived

from planner.derivation.moe.forward import Forward
from planner.derivation.moe.model import moe_model
from planner.derivation.moe.weights import parts_beside_experts, weight_bytes
from planner.papers.janus import cost
from planner.papers.janus.check import check
from planner.papers.janus.costs import Combine
from planner.papers.janus.engines import solve
from planner.papers.janus.prices.attention_fit import attention_fit
from planner.papers.janus.prices.attention_price import layer_seconds
from planner.papers.janus.prices.expert_line import expert_line, few_seconds
from planner.papers.janus.problem import JanusProblem, SizingProblem
from planner.papers.janus.solution import ScalingSolution
from planner.validation import validate
from profiles.experts import ExpertRows
from profiles.library import load
from solvers.report import Limits

GIB = 2**30
EXAMPLES = Path(cost.__file__).parent / "examples"


def held(problem: SizingProblem) -> dict[str, float]:
    assert problem.memory is not None
    return cast("dict[str, float]", problem.memory.attention_fixed_bytes)


def in_bf16(name: str) -> tuple[float, float]:
    """Bytes of the experts and of all weights."""
    model = moe_model(name, Path())
    wide = SimpleNamespace(dtype="bf16", experts_dtype="bf16", activation_dtype="bf16")
    experts = weight_bytes(model, "experts", wide)
    return experts, experts + sum(weight_bytes(model, part, wide) for part in parts_beside_experts(model))


# --- bytes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "total", "unit"),
    [("deepseek-v2", 472, 1e9), ("deepseek-v3", 1342, 1e9), ("qwen3-235b-a22b", 438, GIB)],
)
def test_all_weights_are_what_the_paper_prints(name: str, total: float, unit: float) -> None:
    # Its table calls both GB: 471.5 and 1342.1 GB, 437.9 GiB.
    assert in_bf16(name)[1] / unit == pytest.approx(total, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "experts", "layers"),
    [("deepseek-v2", 421, 60 / 59), ("qwen3-235b-a22b", 423, 1), ("deepseek-v3", 1258, 1)],
)
def test_expert_weights_are_what_the_paper_prints(name: str, experts: float, layers: float) -> None:
    # In GiB: 421.9 for DeepSeek-V2 if its first layer, which is dense, counts as one of experts, 423.0 for Qwen3;
    # 1218 for the 58 layers of DeepSeek-V3 where the paper has 1258, 3.2 % more, in no unit and count of layers.
    assert in_bf16(name)[0] * layers / GIB == pytest.approx(experts, rel=0.033 if name == "deepseek-v3" else 3e-3)


def test_an_attention_instance_holds_all_weights_but_the_experts() -> None:
    made = derived()
    experts, total = in_bf16("qwen3-235b-a22b")
    causes = held(made)
    assert causes["reserve"] == 4e9
    assert "experts_weights" not in causes
    assert sum(causes.values()) - causes["reserve"] == pytest.approx(total - experts)


@pytest.mark.parametrize(
    ("model", "kv_bytes", "context"),
    [
        # Latent and rotary key of 60 and 61 layers; keys and values of 94 layers in 4 heads of 128.
        ("deepseek-v2", 60 * 576 * 2, 1000),
        ("deepseek-v3", 61 * 576 * 2, 1000),
        ("qwen3-235b-a22b", 94 * 2 * 4 * 128 * 2, 1000),
        # 18 layers keep all 4,096 tokens, 18 the last 128: 8 heads of 64.
        ("gpt-oss-120b", 2 * 8 * 64 * 2 * (18 + 18 * 128 / 4096), 4096),
    ],
)
def test_a_cached_token_takes_its_keys_and_values_in_all_layers(model: str, kv_bytes: float, context: int) -> None:
    made = derived(model=model, top={"context_tokens": context, "demand_tokens_per_s": 200})
    assert made.memory is not None
    assert made.memory.kv_bytes_per_token == kv_bytes
    assert kv_bytes == {"deepseek-v2": 69_120, "deepseek-v3": 70_272}.get(model, kv_bytes)


def test_a_narrow_cache_takes_half() -> None:
    wide, narrow = derived().memory, derived(kv_dtype="fp8").memory
    assert wide is not None
    assert narrow is not None
    assert narrow.kv_bytes_per_token == wide.kv_bytes_per_token / 2


def test_a_request_holds_its_stream_its_messages_and_its_workspace() -> None:
    made = derived().memory
    assert made is not None
    # 4,096 numbers: the residual stream twice, sent and returned, 2 bytes each; queries and outputs of 64 heads and
    # keys and values of 4, each 128 wide: 2 x 68 x 128 x 2 bytes.
    assert made.activation_bytes_per_request == 4 * 4096 * 2 + 2 * 68 * 128 * 2


def test_slots_are_what_memory_holds_of_experts_over_all_layers() -> None:
    # 94 layers of 3 x 4096 x 1536 numbers of 2 bytes: 3.548 GB; (151.398 - 4) / 3.548 = 41.5.
    assert derived().slots_per_instance == 41
    assert derived(memory={"reserve_bytes": 10e9}).slots_per_instance == 39
    assert derived(expert_dtype="fp8").slots_per_instance == 83
    assert derived(memory={"capacity_bytes": 1e12}).slots_per_instance == 128


# --- experts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["a100-sxm", "h100-sxm", "h200-sxm", "b200-sxm", "l40s"])
def test_an_expert_takes_the_time_its_weights_take_to_read(device: str) -> None:
    rows = ExpertRows(load(device), 4096, 1536, 128, 8)
    found = expert_line(rows, "refuse")
    read_s = 3 * 4096 * 1536 * 2 / (rows.profile.device.memory_bandwidth_bytes_per_s or 0.0)
    assert read_s < found.line.beta < 1.2 * read_s
    # What a device takes before it reads any expert is some launches, not more than a few experts.
    assert 0 < found.line.alpha < 8 * found.line.beta
    assert found.line.worst < 0.06


def test_the_line_passes_through_the_rows_of_few_tokens() -> None:
    rows = ExpertRows(load("h200-sxm"), 4096, 1536, 128, 8)
    found = expert_line(rows, "refuse")
    seconds = few_seconds(rows, "refuse")
    # 1, 2, 4, 8 and 16 tokens reach 8 to 128 experts.
    by_hand = found.line.alpha + found.line.beta * np.array([8, 16, 32, 64, 128])
    assert by_hand == pytest.approx(seconds, rel=found.line.worst * 1.01)
    assert found.sources.measured == 0.6
    assert found.measured


def test_the_line_ends_where_products_take_a_quarter_more_than_weights() -> None:
    rows = ExpertRows(load("h200-sxm"), 4096, 1536, 128, 8)
    found = expert_line(rows, "refuse")
    assert found.holds_to_tokens is not None
    level = 1.25 * (found.line.alpha + 128 * found.line.beta)
    below, above = (float(rows.look_up(np.array([tokens]), np.array([1.0]), "refuse").seconds[0])
                    for tokens in (found.holds_to_tokens / 1.1, found.holds_to_tokens))  # fmt: skip
    assert below < level < 1.001 * above
    # Peak rates: 989 TFLOP/s over 4.8 TB/s read is 206 tokens an expert, 3,300 in flight; kernels reach less.
    assert 500 < found.holds_to_tokens < 3300


def test_experts_without_rows_are_modelled_from_those_of_others() -> None:
    found = expert_line(ExpertRows(load("h200-sxm"), 7168, 2048, 256, 8), "roofline")
    read_s = 3 * 7168 * 2048 * 2 / 4.8e12
    assert read_s < found.line.beta < 1.2 * read_s
    assert (found.sources.modelled, found.measured) == (1.0, False)


@pytest.mark.parametrize("device", ["h100-sxm", "h200-sxm"])
def test_modelled_experts_are_never_read_faster_than_memory_gives(device: str) -> None:
    # gpt-oss-120b: 3 x 2880 x 2880 weights of 2 bytes, 49.77 MB. Rows of other experts say 5.1 and 3.6 TB/s of 4.8 and
    # 3.35.
    rows = ExpertRows(load(device), 2880, 2880, 128, 4)
    found = expert_line(rows, "roofline")
    bandwidth = rows.profile.device.memory_bandwidth_bytes_per_s or 0.0
    assert found.line.beta == pytest.approx(49_766_400 / bandwidth, rel=1e-7)
    reached = np.array([4, 8, 16, 32, 64, 128])
    off = np.abs((found.line.alpha + found.line.beta * reached) / few_seconds(rows, "roofline") - 1)
    assert (found.line.mape, found.line.worst) == (
        pytest.approx(off.mean(), rel=1e-3),
        pytest.approx(off.max(), rel=1e-3),
    )
    # Rows of its own stay as they are.
    measured = ExpertRows(load(device), 4096, 1536, 128, 8)
    assert expert_line(measured, "roofline") == expert_line(measured, "refuse")


def test_experts_slower_in_a_narrow_dtype_are_said_to_be_so() -> None:
    # fp8 rows of Hopper were measured with a kernel that reads at a seventh of the bandwidth.
    said = derived(expert_dtype="fp8").moe.cautions
    assert said is not None
    assert "compare derive.expert_dtype=bf16" in said["narrow_dtype_slower"]
    assert derived().moe.cautions is None
    assert derived(profile="b200-sxm", expert_dtype="fp8").moe.cautions is None


# --- attention ----------------------------------------------------------------------------------------------------

BATCHES = np.unique(np.round(2.0 ** np.arange(0, 9, 0.5)))


@pytest.mark.parametrize("combine", ["larger", "sum"])
def test_the_fit_finds_the_coefficients_that_made_the_prices(combine: Combine) -> None:
    def priced(context: int) -> Any:
        requests = BATCHES * (1e-6 + 5e-9 * context)
        return 2e-4 + requests if combine == "sum" else np.maximum(2e-4, requests)

    found = attention_fit(BATCHES, priced(1000), priced(500), 1000, 500, combine)
    assert found.floor_s == pytest.approx(2e-4)
    assert found.per_cached_token_s == pytest.approx(5e-9)
    assert found.per_request_s == pytest.approx(1e-6)
    assert found.worst < 1e-6


def test_no_floor_and_slope_are_nearer_than_those_of_the_fit() -> None:
    seconds = 1e-4 + 2e-6 * BATCHES
    found = attention_fit(BATCHES, seconds, seconds, 1000, 500, "larger")

    def off(floor: float, slope: float) -> float:
        return float(((np.maximum(floor, slope * BATCHES) / seconds - 1) ** 2).sum())

    fitted = off(found.floor_s, found.per_request_s + 1000 * found.per_cached_token_s)
    grid = itertools.product(np.geomspace(5e-5, 4e-4, 80), np.geomspace(1e-6, 1e-5, 80))
    assert fitted <= min(off(floor, slope) for floor, slope in grid) * 1.01
    # A sum is twice the larger of its two parts where they are equal; the fit shares that out.
    assert 0.05 < found.mape < 0.2
    assert found.worst < 0.4


def test_a_cache_that_costs_nothing_leaves_all_to_the_request_and_one_that_costs_all_leaves_none() -> None:
    seconds = BATCHES * 1e-6
    free = attention_fit(BATCHES, seconds, seconds, 1000, 500, "larger")
    assert (free.per_cached_token_s, free.per_request_s) == (0.0, pytest.approx(1e-6))
    whole = attention_fit(BATCHES, seconds, seconds / 4, 1000, 500, "sum")
    assert whole.per_request_s == 0.0
    assert whole.per_cached_token_s == pytest.approx(1e-9)
    single = attention_fit(np.array([1.0]), np.array([1e-4]), np.array([1e-4]), 1, 1, "sum")
    assert single.floor_s + single.per_request_s + single.per_cached_token_s == pytest.approx(1e-4)


@pytest.mark.parametrize("model", ["deepseek-v2", "deepseek-v3", "qwen3-235b-a22b", "gpt-oss-120b"])
def test_devices_add_what_the_paper_takes_the_larger_of(model: str) -> None:
    def off(combine: Combine) -> float:
        made = derivation(model=model, attention=combine, top={"demand_tokens_per_s": 5000.0})
        return float(made.derive["resolved"]["fits"]["own"]["attention"]["mape"])

    assert off("sum") < 0.05
    assert off("larger") > 0.08


def test_a_fit_that_is_far_off_is_said_to_be() -> None:
    made = derived(attention="larger", top={"demand_tokens_per_s": 5000.0}).attention
    assert made.combine == "larger"
    assert "% off the prices of attention in the mean" in (made.cautions or {})["poor_fit"]
    assert derived(top={"demand_tokens_per_s": 5000.0}).attention.cautions is None


def test_attention_that_adds_is_solved_checked_and_timed_so() -> None:
    document = json.loads((EXAMPLES / "default.json").read_text())
    attention = document["attention"]
    attention["combine"] = "sum"
    problem = validate(JanusProblem, document)
    solution, _ = solve(problem, None, Limits())
    assert isinstance(solution, ScalingSolution)
    assert check(problem, solution) == []
    request_s = attention["per_request_s"] + 1000 * attention["per_cached_token_s"]
    by_hand = attention["floor_s"] + solution.batch_per_attention_instance * request_s
    assert solution.layer.attention_s == pytest.approx(by_hand)
    layer = solution.layer
    assert solution.tpot_s == pytest.approx(10 * (layer.attention_s + layer.moe_s + layer.comm_s))
    assert solution.batch == pytest.approx(600 * solution.tpot_s)
    # The page's pools (1, 6) need 20.98 ms with the larger of both; 200 us more in each of ten layers miss 22 ms.
    assert (solution.attention_instances, solution.expert_instances) == (2, 6)


def test_a_cached_token_takes_the_time_its_keys_and_values_take_to_read() -> None:
    made = derived(top={"demand_tokens_per_s": 20_000})
    # 4 heads of 128, keys and values, 2 bytes: 2,048 bytes a layer over 4.8 TB/s.
    assert 2048 / 4.8e12 < made.attention.per_cached_token_s < 1.5 * 2048 / 4.8e12


def test_a_layer_has_its_share_of_the_dense_layers_and_of_the_head() -> None:
    model = moe_model("deepseek-v3", Path())
    forward = Forward(model, load("h200-sxm"), "decode", 1, 1000, "bf16", "bf16", "bf16", "roofline")
    batch = np.array([1.0])
    whole, headless = (float(layer_seconds(forward, batch, headed).seconds[0]) for headed in (True, False))
    # The head: 129,280 x 7,168 weights of 2 bytes at 4.8 TB/s, over 58 layers; rows read a little slower.
    head_s = 129_280 * 7168 * 2 / 4.8e12 / 58
    assert head_s < whole - headless < 1.4 * head_s


def test_a_head_that_no_row_reaches_is_left_out_and_said_to_be() -> None:
    # Products are measured up to 65,536 columns; the head of Qwen3 has 151,936.
    measured = derived(extrapolate="refuse", top={"demand_tokens_per_s": 400.0}).attention
    modelled = derived(extrapolate="roofline", top={"demand_tokens_per_s": 400.0}).attention
    assert "derive.extrapolate=roofline" in (measured.cautions or {})["left_out"]
    assert modelled.cautions is None
    assert measured.floor_s < modelled.floor_s


def test_what_was_priced_is_kept_beside_the_fit() -> None:
    made = derived().attention
    assert made.priced is not None
    requests, times = np.array(made.priced.requests), np.array(made.priced.times_s)
    fitted = made.floor_s + requests * (made.per_request_s + 1000 * made.per_cached_token_s)
    stated = derivation().derive["resolved"]["fits"]["own"]["attention"]
    assert np.abs(fitted / times - 1).max() == pytest.approx(stated["worst"], rel=1e-3)
    assert (np.diff(times) >= 0).all()
    # 2,000 tokens/s x 50 ms: never more than 100 requests in flight.
    assert (requests[0], requests[-1]) == (1, 100)


# --- the whole ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "profile", "dtype"),
    [
        ("deepseek-v2", "a100-sxm", "bf16"),
        ("deepseek-v2", "h100-sxm", "bf16"),
        ("deepseek-v3", "b200-sxm", "fp8"),
        ("qwen3-235b-a22b", "h200-sxm", "bf16"),
        ("gpt-oss-120b", "h100-sxm", "bf16"),
    ],
)
def test_derived_pools_carry_the_demand_and_pass_the_check(model: str, profile: str, dtype: str) -> None:
    made = derived(model=model, profile=profile, dtype=dtype, top={"slo_tpot_s": 0.1})
    solution, _ = solve(made, None, Limits())
    assert isinstance(solution, ScalingSolution)
    assert check(made, solution) == []
    assert solution.tpot_s <= 0.1
    # A token takes longer than its layers' busiest instances read the experts that it waits for.
    bandwidth = load(profile).device.memory_bandwidth_bytes_per_s or 0.0
    each = in_bf16(model)[0] / made.num_experts / (1 if dtype == "bf16" else 2)
    assert solution.tpot_s > solution.a_max * each / bandwidth
    # One attention instance (two of A100), and no more expert instances than hold the experts, serve 2,000 tokens/s.
    assert solution.attention_instances == (2 if profile == "a100-sxm" else 1)
    assert solution.expert_instances == -(-made.num_experts // made.slots_per_instance)


@pytest.mark.parametrize(
    ("model", "profile", "demand", "slo_s"),
    [("qwen3-235b-a22b", "h200-sxm", 10_000.0, 0.06), ("deepseek-v2", "h100-sxm", 5000.0, 0.05),
     ("gpt-oss-120b", "h100-sxm", 20_000.0, 0.03)],
)  # fmt: skip
def test_more_memory_or_more_slots_never_need_more_gpus(model: str, profile: str, demand: float, slo_s: float) -> None:
    def total(**changes: Any) -> int:
        link = {"bandwidth_bytes_per_s": 50e9, "latency_s": 5e-6}
        made = derived(
            model=model,
            profile=profile,
            cluster={"num_ranks": 64, "gpus_per_node": 8, "inter_node": link},
            top={"demand_tokens_per_s": demand, "slo_tpot_s": slo_s},
            **changes,
        )
        solution, _ = solve(made, None, Limits())
        assert isinstance(solution, ScalingSolution)
        return solution.total_instances

    by_memory = [total(memory={"capacity_bytes": size}) for size in (5e10, 8e10, 1.1e11, 1.5e11)]
    by_slots = [total(slots_per_instance=slots) for slots in (8, 12, 16, 20)]
    for totals in (by_memory, by_slots):
        assert totals == sorted(totals, reverse=True)
        assert totals[-1] < totals[0]


def test_less_demand_never_needs_more_gpus_and_a_faster_device_never_more_time() -> None:
    totals = []
    for demand in (500.0, 2000.0, 8000.0, 16000.0):
        solution, _ = solve(derived(top={"demand_tokens_per_s": demand, "slo_tpot_s": 0.08}), None, Limits())
        assert isinstance(solution, ScalingSolution)
        totals.append(solution.total_instances)
    assert totals == sorted(totals)
    slow, fast = derived(profile="h100-sxm"), derived(profile="h200-sxm")
    assert fast.attention.floor_s < slow.attention.floor_s
    assert fast.moe.per_expert_s < slow.moe.per_expert_s
