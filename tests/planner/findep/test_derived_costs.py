"""Derived costs by hand: FLOPs on an ideal device, bytes on a stated link, bytes on a GPU."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from findep_derived import derived, document, setting

from planner.derivation.moe.attention_cost import attention_seconds, dense_seconds, head_seconds, shared_seconds
from planner.papers.findep.amounts import SampleTable, TokenCost, TokenTable
from planner.papers.findep.expert_cost import expert_seconds
from planner.papers.findep.footprint import bytes_per_sample, memory_of
from planner.papers.findep.link_cost import port_bytes_per_copy
from profiles.geometry import load_model
from profiles.priced import MEASURED, Priced
from profiles.profile import Profile

Floats = npt.NDArray[np.float64]
SAMPLES = np.array([1.0, 3.0])
DECODE: dict[str, Any] = {"phase": "decode", "prompt_tokens": None, "context_tokens": 4096}


class Ideal:
    """A device of 1e15 FLOP/s whatever the shape, with rows of everything."""

    def gemm(self, m: Floats, n: Floats, k: Floats, **_: Any) -> Priced:
        return _measured(2 * m * n * k / 1e15)

    def prefill_attention(self, length: Any, batch: Any, heads: int, kv_heads: int, head_dim: int, **_: Any) -> Priced:
        return _measured(np.asarray(2 * heads * head_dim * length**2 * batch / 1e15))

    def decode_attention(
        self, kv_length: Any, batch: Any, heads: int, kv_heads: int, head_dim: int, **_: Any
    ) -> Priced:
        return _measured(np.asarray(4 * heads * head_dim * kv_length * batch / 1e15))

    def operation(self, family: str, axes: dict[str, Any], **_: Any) -> Priced:
        work = {
            "mla_prefill": lambda: axes["heads"] * axes["batch"] * axes["length"] ** 2 * (192 + 128),
            "mla_decode": lambda: axes["heads"] * axes["batch"] * axes["kv_length"] * 2 * (576 + 512),
            "mla_bmm": lambda: axes["heads"] * axes["tokens"] * 2 * 128 * 512,
        }
        return _measured(np.asarray(work[family]() / 1e15))

    def has(self, family: str, *_: Any, workload: str = "", **__: Any) -> bool:
        return not workload.startswith("window")


def _measured(seconds: Floats) -> Priced:
    return Priced(seconds, np.full(np.shape(seconds), MEASURED, dtype=np.int8))


def ideal(**changes: Any) -> Any:
    return setting(profile=cast(Profile, Ideal()), **changes)


def test_a_prefill_layer_on_attention_gpus_costs_its_flops() -> None:
    # Qwen3-235B: 4096 x (9216 + 8192) of projections, 4096 x 128 of the router, half of 4 x 64 x 128 a pair of tokens.
    found = attention_seconds(ideal().forward, SAMPLES).seconds
    one = 2 * 2048 * 4096 * (9216 + 8192 + 128) + 2 * 64 * 128 * 2048**2
    assert found == pytest.approx(SAMPLES * one / 1e15, rel=1e-12)


def test_a_decoded_token_attends_to_its_context() -> None:
    found = attention_seconds(ideal(**DECODE).forward, SAMPLES).seconds
    one = 2 * 4096 * (9216 + 8192 + 128) + 4 * 64 * 128 * 4096
    assert found == pytest.approx(SAMPLES * one / 1e15, rel=1e-12)


def test_latent_attention_is_expanded_in_prefill_and_absorbed_in_decode() -> None:
    # W_attn of DeepSeek-V3: M q + q n_h (d_n + d_r) + M (c + d_r) + c n_h (d_n + d_v) + n_h d_v M.
    up = 512 * 128 * 256
    weights = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + up + 128 * 128 * 7168
    router = 7168 * 256
    prefill = attention_seconds(ideal(model="deepseek-v3").forward, SAMPLES).seconds
    one = 2 * 2048 * (weights + router) + 128 * 2048**2 * 320
    assert prefill == pytest.approx(SAMPLES * one / 1e15, rel=1e-12)
    # Absorbed: kv_b is met head by head on either side of the kernel, the same FLOPs; n_h (2 c + d_r) a key.
    decode = attention_seconds(ideal(model="deepseek-v3", **DECODE).forward, SAMPLES).seconds
    one = 2 * (weights + router) + 2 * 128 * 4096 * (2 * 512 + 64)
    assert decode == pytest.approx(SAMPLES * one / 1e15, rel=1e-12)


def test_layers_that_slide_and_layers_that_do_not_are_averaged() -> None:
    # gpt-oss-120b: 18 of 36 layers see 128 keys. Pieces of 256 tokens have 128^2 x 2 pairs each: 2,048 x 128 in all.
    found = attention_seconds(ideal(model="gpt-oss-120b").forward, SAMPLES).seconds
    products = 2 * 2048 * (2880 * (64 + 16) * 64 + 64 * 64 * 2880 + 2880 * 128)
    full, window = 2 * 64 * 64 * 2048**2, 4 * 64 * 64 * 2048 * 128
    assert found == pytest.approx(SAMPLES * (products + (full + window) / 2) / 1e15, rel=1e-12)
    decode = attention_seconds(ideal(model="gpt-oss-120b", **DECODE).forward, SAMPLES).seconds
    assert decode == pytest.approx(SAMPLES * (products / 2048 + 4 * 64 * 64 * (4096 + 128) / 2) / 1e15, rel=1e-12)


def test_shared_experts_are_three_products_of_their_joint_width() -> None:
    found = shared_seconds(ideal(model="deepseek-v2").forward, SAMPLES)
    assert found is not None
    assert found.seconds == pytest.approx(SAMPLES * 2 * 2048 * 3 * 5120 * 3072 / 1e15, rel=1e-12)
    assert shared_seconds(ideal().forward, SAMPLES) is None


def test_dense_layers_and_the_head_are_told_beside_the_plan() -> None:
    model = load_model("deepseek-v3")
    dense = dense_seconds(ideal(model="deepseek-v3").forward, SAMPLES)
    assert dense is not None
    linear = sum(count * kind.linear_flops_per_token for kind, count in model.kinds() if kind.name == "dense")
    assert dense.seconds == pytest.approx(SAMPLES * (2048 * linear + 3 * 128 * 2048**2 * 320) / 1e15, rel=1e-12)
    head = head_seconds(ideal(model="deepseek-v3").forward, SAMPLES).seconds
    assert head == pytest.approx(SAMPLES * model.head_flops_per_token / 1e15, rel=1e-12)
    assert dense_seconds(ideal().forward, SAMPLES) is None


@pytest.mark.parametrize("model", ["qwen3-235b-a22b", "deepseek-v3"])
def test_one_decoded_sample_is_near_what_its_bytes_take(model: str) -> None:
    """Weights of a layer and 4,096 cached tokens read at 4.8 TB/s: launches at most double or treble that."""
    kind = load_model(model).kinds()[-1][0]
    parts = kind.parameters_by_part
    read = 2 * (parts["attention"] + parts["router"] + 4096 * kind.attention.kv_elements) / 4.8e12
    found = float(attention_seconds(setting(model=model, **DECODE).forward, np.array([1.0])).seconds[0])
    assert 1.0 < found / read < 3.0


# --- experts ----------------------------------------------------------------------------------------------------


def test_experts_of_a_gpu_are_its_share_of_a_whole_row_and_a_launch() -> None:
    made = setting(splits=[{"attention_gpus": 4, "expert_gpus": 4}, {"attention_gpus": 5, "expert_gpus": 3}])
    # 1,024 tokens of a chunk before routing are 64 of each of 128 experts.
    one = expert_seconds(made, np.array([[64.0], [64.0]])).seconds[:, 0]
    row = float(made.profile.moe_gemm(1024, hidden=4096, ffn=1536, experts=128, top_k=8).seconds)
    launch = 42.26e-6  # its shortest row
    assert 32 * one[0] == pytest.approx(launch + (row - launch) / 4, rel=1e-4)
    assert 43 * one[1] == pytest.approx(launch + (row - launch) * 43 / 128, rel=1e-4)


def test_split_rows_are_those_of_as_many_ranks() -> None:
    made = setting(expert_rows="split", splits=[{"attention_gpus": 4, "expert_gpus": 4}])
    one = expert_seconds(made, np.array([[64.0]])).seconds[0, 0]
    row = made.profile.moe_gemm(1024, hidden=4096, ffn=1536, experts=128, top_k=8, expert_ranks=4)
    assert 32 * one == pytest.approx(float(row.seconds))


def test_skewed_routing_is_priced_from_split_rows_unless_told_otherwise() -> None:
    assert not setting(workload="power_law_1.2").given.whole_rows
    assert setting(workload="power_law_1.2", expert_rows="whole").given.whole_rows
    assert setting().given.whole_rows


# --- links ------------------------------------------------------------------------------------------------------

WIDE = {"num_ranks": 24, "gpus_per_node": 8, "inter_node": {"bandwidth_bytes_per_s": 5e10, "latency_s": 2e-5}}


def test_across_nodes_a_copy_takes_its_bytes_through_the_busier_port() -> None:
    splits = [{"attention_gpus": ag, "expert_gpus": eg} for ag, eg in ((8, 16), (16, 8))]
    made = derived(cluster=WIDE, splits=splits, dispatch_dtype="fp8").problem
    narrow, wide = made.splits
    # 4,096 numbers a copy: 1 byte out, 2 back. 8 attention GPUs send what 16 expert GPUs receive: twice as much each.
    assert narrow.a2e == TokenCost(alpha_s=2e-5, beta_s_per_token=2 * 4096 / 5e10, sources=narrow.a2e.sources)
    assert narrow.e2a is not None
    assert wide.e2a is not None
    assert narrow.e2a.beta_s_per_token == pytest.approx(2 * 2 * 4096 / 5e10)  # type: ignore[union-attr]
    assert wide.a2e.beta_s_per_token == pytest.approx(4096 / 5e10)  # type: ignore[union-attr]
    assert wide.a2e.sources is not None
    assert wide.a2e.sources.stated == 1.0


def test_a_node_carries_the_bytes_of_an_all_to_all() -> None:
    made = derived(splits=[{"attention_gpus": 4, "expert_gpus": 4}])
    table = made.problem.splits[0].a2e
    assert isinstance(table, TokenTable)
    assert made.problem.splits[0].e2a is None
    copies = table.tokens[10]
    whole = setting().profile.collective("all_to_all", copies * 4096 * 2 * 8 / 7, 8)
    assert table.times_s[10] == pytest.approx(float(whole.seconds), rel=1e-8)
    assert table.sources is not None
    assert table.sources.modelled == 1.0


def test_a_token_sent_once_to_each_gpu_travels_less_often() -> None:
    splits = [{"attention_gpus": 7, "expert_gpus": 1}, {"attention_gpus": 6, "expert_gpus": 2}]
    each, once = (port_bytes_per_copy(setting(splits=splits, copies=kind), 2.0) for kind in ("expert", "gpu"))
    # Splits are sorted. One GPU holds all eight experts of a token. Of two with 64 each, a GPU has none of them with
    # probability (64 x 63 x ... x 57) / (128 x 127 x ... x 121), and on average four.
    none = np.prod([(64 - i) / (128 - i) for i in range(8)])
    assert once / each == pytest.approx([(1 - none) / 4, 1 / 8])


# --- memory -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["qwen3-235b-a22b", "deepseek-v2", "deepseek-v3", "gpt-oss-120b"])
def test_both_pools_together_hold_the_weights_of_the_model(model: str) -> None:
    made = setting(model=model)
    memory = memory_of(made, 141e9, 4e9)
    fixed, expert = memory.attention_fixed_bytes, memory.expert_bytes_per_expert
    assert isinstance(fixed, dict)
    assert isinstance(expert, dict)
    held = sum(fixed.values()) - 4e9 + made.model.experts.count * sum(expert.values())
    assert held == pytest.approx(load_model(model).weight_bytes("bf16"), rel=1e-9)


def test_a_resident_sample_holds_its_cache_its_rows_and_its_copies() -> None:
    # Qwen3-235B keeps 2 x 4 x 128 numbers a token and layer, 2,048 bytes; DeepSeek-V2 576, 1,152 bytes.
    held = bytes_per_sample(setting(), 2)
    assert held["kv_cache"] == 94 * 2048 * 2048
    assert held["residual_stream"] == 2 * 2048 * 4096 * 2
    assert held["exchange_buffers"] == 2048 * 2 * 4096 * (2 + 2)
    latent = bytes_per_sample(setting(model="deepseek-v2", kv_dtype="fp8", dispatch_dtype="fp8"), 16)
    assert latent["kv_cache"] == 60 * 2048 * 576
    assert latent["exchange_buffers"] == 2048 * 6 * 5120 * (1 + 2)
    decode = bytes_per_sample(setting(**DECODE), 2)
    assert decode["kv_cache"] == 94 * 4096 * 2048
    assert decode["residual_stream"] == 2 * 4096 * 2


def test_narrow_products_halve_their_weights_and_no_others() -> None:
    wide, narrow = (memory_of(setting(dtype=dtype), 141e9, 0.0) for dtype in ("bf16", "fp8"))
    for name, factor in (("attention_weights", 0.5), ("embeddings_weights", 1.0), ("router_weights", 1.0)):
        assert narrow.attention_fixed_bytes[name] == factor * wide.attention_fixed_bytes[name]  # type: ignore[index]
    assert narrow.expert_bytes_per_expert["expert_weights"] == 94 * 3 * 4096 * 1536  # type: ignore[index]


def test_workspace_is_the_widest_of_what_runs_one_after_the_other() -> None:
    # q, k, v and the output of 64 + 2 x 4 + 64 heads of 128, two bytes; DeepSeek-V3's first layers have a wider network
    # than that only where the latent is not expanded: 2 x 18,432 numbers against 128 x (192 + 192 + 128 + 128).
    assert memory_of(setting(), 1.0, 0.0).attention_workspace_bytes_per_sample == {"workspace": 2048 * 136 * 128 * 2}
    latent = memory_of(setting(model="deepseek-v3"), 1.0, 0.0).attention_workspace_bytes_per_sample
    assert latent == {"workspace": 2048 * 128 * (192 + 192 + 128 + 128) * 2}


def test_the_document_of_these_tests_is_a_table_of_costs() -> None:
    assert document()["derive"]["model"] == "qwen3-235b-a22b"
    assert isinstance(derived().problem.attention, SampleTable)
