"""The derived form of Compass: which pairs of GEMM and collective a model's layers have, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compass_derived import accounts, derived, document, operators, refused, table

from planner.documents import canonical_bytes
from planner.envelope import dump_model
from planner.papers.compass.costs.pairs import pairs_of
from planner.papers.compass.costs.tensor_parallel import cuts
from planner.papers.compass.derived import CompassDerivedProblem
from planner.papers.compass.engines import solve
from planner.papers.compass.problem import AG_NAMES, RS_NAMES, CompassProblem
from planner.validation import validate
from profiles.geometry import LayerRun, ModelGeometry
from profiles.geometry.attention import GroupedAttention
from profiles.geometry.feed_forward import Dense
from profiles.geometry.model import LayerKind
from solvers.report import Limits

EXAMPLES = Path(__file__).parents[3] / "planner" / "papers" / "compass" / "examples"
DEEPSEEK = {"model": "deepseek-v3", "extrapolate": "roofline", "sequence_tokens": 4096}


def products(given: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """(m, n, k) of every operator."""
    return {name: tuple(account["gemm"].values()) for name, account in accounts(given).items()}


# --- pairs --------------------------------------------------------------------------------------------------------


def test_a_layer_has_the_pairs_of_megatron_with_a_ranks_share_of_each_product() -> None:
    # hidden 8192, 64 query and 8 key-value heads of 128, ffn 28672, over 8 ranks: queries 1024 and keys and values 128
    # each; gate and up 3584 each. Gradients of inputs exchange n and k.
    assert products(document()) == {
        "qkv_fprop": (8192, 1280, 8192),
        "proj_fprop": (8192, 8192, 1024),
        "fc1_fprop": (8192, 7168, 8192),
        "fc2_fprop": (8192, 8192, 3584),
        "qkv_dgrad": (8192, 8192, 1280),
        "proj_dgrad": (8192, 1024, 8192),
        "fc1_dgrad": (8192, 8192, 7168),
        "fc2_dgrad": (8192, 3584, 8192),
    }


def test_shards_of_the_sequence_are_gathered_before_and_scattered_behind_and_gradients_do_the_opposite() -> None:
    found = operators(document())
    gathered = {name for name, operator in found.items() if operator.op == "ag_gemm"}
    assert gathered == {"qkv_fprop", "fc1_fprop", "proj_dgrad", "fc2_dgrad"}
    assert {operator.op for name, operator in found.items() if name not in gathered} == {"gemm_rs"}
    # every one moves the activation of all 8,192 tokens once, 16 bits a number
    assert {account["message_bytes"] for account in accounts(document()).values()} == {8192 * 8192 * 2}


def test_without_shards_of_the_sequence_only_sums_are_reduced() -> None:
    found = operators(document(sequence_parallel=False))
    assert {name: operator.op for name, operator in found.items()} == dict.fromkeys(
        ("proj_fprop", "fc2_fprop", "qkv_dgrad", "fc1_dgrad"), "gemm_ar"
    )


def test_a_forward_pass_has_no_gradients() -> None:
    assert set(operators(document(passes="forward"))) == {"qkv_fprop", "proj_fprop", "fc1_fprop", "fc2_fprop"}


def test_an_operator_is_called_once_a_layer_and_micro_batch() -> None:
    found = operators(document(micro_batches=3, micro_batch=2, sequence_tokens=4096))
    assert {operator.count for operator in found.values()} == {80 * 3}
    assert {operator.split_extent for operator in found.values()} == {8192}


def test_key_value_heads_fewer_than_ranks_are_held_by_several() -> None:
    # 64 query heads of 128 over 8 ranks, 4 key and 4 value heads: each rank holds one of either
    given = document(model="qwen3-235b-a22b", sequence_tokens=4096)
    assert products(given)["qkv_fprop"] == (4096, 8 * 128 + 128 + 128, 4096)


def test_latent_attention_gathers_its_latents() -> None:
    # 128 heads over 8 ranks: queries of 192, keys and values of 256, from latents of 1536 and 512
    given = document(**DEEPSEEK)
    found, priced = products(given), accounts(given)
    assert found["q_up_fprop"] == (4096, 16 * 192, 1536)
    assert found["kv_up_fprop"] == (4096, 16 * 256, 512)
    assert priced["q_up_fprop"]["message_bytes"] == 4096 * 1536 * 2
    assert priced["kv_up_dgrad"]["message_bytes"] == 4096 * 512 * 2
    assert "qkv_fprop" not in found


def test_queries_that_are_not_compressed_come_from_the_activation() -> None:
    # DeepSeek-V2-Lite: hidden 2048, 16 heads, no q_lora
    given = document(model="deepseek-v2-lite", extrapolate="roofline", tp_size=4, sequence_tokens=4096)
    assert products(given)["q_fprop"] == (4096, 4 * 192, 2048)


def test_shared_experts_are_told_apart_from_dense_layers() -> None:
    found = operators(document(**DEEPSEEK))
    assert (found["fc1_fprop"].count, found["shared_fc1_fprop"].count) == (3, 58)
    assert products(document(**DEEPSEEK))["shared_fc2_fprop"] == (4096, 7168, 2048 // 8)


def test_layers_that_slide_have_the_products_of_those_that_do_not() -> None:
    given = document(model="gpt-oss-20b", sequence_tokens=4096)
    assert {name: operator.count for name, operator in operators(given).items()} == dict.fromkeys(
        ("qkv_fprop", "proj_fprop", "qkv_dgrad", "proj_dgrad"), 24
    )


def test_layers_of_several_widths_are_told_apart_by_their_sizes() -> None:
    attention = GroupedAttention(8, 8, 64)
    runs = tuple(LayerRun(LayerKind(512, attention, Dense(ffn)), 2) for ffn in (1024, 2048))
    given = validate(CompassDerivedProblem, document(passes="forward")).derive
    found = {pair.id: pair.count for pair in pairs_of(given, cuts(ModelGeometry("two", 512, 100, runs), 8), "none")}
    assert found == {
        "qkv_fprop": 4,
        "proj_fprop": 4,
        "fc1_fprop_256x512": 2,
        "fc2_fprop_512x128": 2,
        "fc1_fprop_512x512": 2,
        "fc2_fprop_512x256": 2,
    }


def test_experts_get_their_tokens_by_an_all_to_all_of_their_ranks() -> None:
    given = document(**DEEPSEEK, expert_parallel_size=8)
    found, priced = operators(given), accounts(given)["experts_fprop"]
    assert found["experts_dgrad"].op == found["experts_fprop"].op == "a2a_gemm"
    # each rank sends the 512 tokens of its shard to 8 experts each
    assert priced["message_bytes"] == 4096 // 8 * 8 * 7168 * 2
    assert found["experts_fprop"].split_extent == 512
    assert found["experts_fprop"].count == 58
    assert "left_out" not in (derived(given).problem.cautions or {})


def test_experts_without_ranks_of_their_own_are_left_out_and_said() -> None:
    cautions = derived(document(**DEEPSEEK)).problem.cautions or {}
    assert "derive.expert_parallel_size" in cautions["left_out"]
    assert "left_out" not in (derived(document()).problem.cautions or {})


# --- launcher rules -----------------------------------------------------------------------------------------------


def test_transformer_engine_is_given_the_six_names_it_can_overlap() -> None:
    made = derived(document("transformer_engine"))
    assert {operator.gemm_name for operator in made.problem.operators} == {*AG_NAMES, *RS_NAMES}
    assert all(operator.id == operator.gemm_name for operator in made.problem.operators)
    left = (made.problem.cautions or {})["left_out"]
    assert left.startswith("fc1_dgrad, qkv_dgrad:")


def test_its_ring_takes_one_or_two_shards_a_step_and_its_pipeline_cuts_output_features() -> None:
    found = operators(document("transformer_engine"))
    for name in AG_NAMES:
        assert set(table(found[name])) == {4, 8}
        assert found[name].split_extent == 8192
    # 8192 features in tiles of 128 are 64 of them
    assert set(table(found["fc2_fprop"])) == {2, 4, 8, 16, 32}
    hidden_7168 = operators(document("transformer_engine", **DEEPSEEK))["fc2_fprop"]
    assert hidden_7168.split_extent == 7168
    assert set(table(hidden_7168)) == {2, 4, 7, 8, 14, 28}


def test_layers_that_share_a_user_buffer_are_one_operator_with_their_mean_time() -> None:
    one = operators(document("transformer_engine", **DEEPSEEK))["fc1_fprop"]
    apart = operators(document(**DEEPSEEK))
    dense, shared = apart["fc1_fprop"], apart["shared_fc1_fprop"]
    assert dense.sequential_time_s is not None
    assert shared.sequential_time_s is not None
    assert one.count == 61
    assert one.sequential_time_s == pytest.approx((3 * dense.sequential_time_s + 58 * shared.sequential_time_s) / 61)


def test_latents_and_experts_that_transformer_engine_does_not_overlap_are_said() -> None:
    made = derived(document("transformer_engine", **DEEPSEEK, expert_parallel_size=8))
    left = (made.problem.cautions or {})["left_out"]
    assert "q_up_fprop" in left
    assert "no all-to-all" in left
    assert {operator.op for operator in made.problem.operators} == {"ag_gemm", "gemm_rs"}


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "changes", "code", "where"),
    [
        ("none", {"tp_size": 3}, "out_of_range", "derive.tp_size"),  # does not divide the tokens
        ("none", {"tp_size": 16}, "out_of_range", "derive.tp_size"),  # leaves the node
        ("none", {"tp_size": 1}, "out_of_range", "derive.tp_size"),
        (
            "none",
            {"tp_size": 16, "cluster": {"num_ranks": 16, "gpus_per_node": 16}},
            "outside_measured_range",
            "derive.tp_size",
        ),
        ("none", {"sequence_tokens": 1 << 24, "micro_batch": 1024}, "too_large", "derive.micro_batch"),
        ("none", {"model": "llama-3.1-70"}, "unknown_model", "derive.model"),
        ("none", {"profile": "h100"}, "unknown_profile", "derive.profile"),
        ("none", {"profile": None}, "missing_field", "derive.profile"),
        ("none", {"dtype": "nvfp4"}, "outside_measured_range", "derive.dtype"),
        ("none", {"dtype": "int4"}, "out_of_range", "derive.dtype"),
        ("none", {"sequence_tokens": 65536}, "outside_measured_range", "derive.extrapolate"),  # 1 GiB to gather
        ("none", {"allowed_strategies": []}, "out_of_range", "derive.allowed_strategies"),
        ("none", {"allowed_strategies": ["sequential", "sequential"]}, "duplicate_id", "derive.allowed_strategies"),
        ("none", {"fused": {"kernels": []}}, "out_of_range", "derive.fused.kernels"),
        ("none", {"contention": {"comm": 0.9}}, "out_of_range", "derive.contention.comm"),
        ("none", {"expert_parallel_size": 8}, "out_of_range", "derive.expert_parallel_size"),  # no experts
        ("none", {**DEEPSEEK, "expert_parallel_size": 3}, "out_of_range", "derive.expert_parallel_size"),
        (
            "none",
            {**DEEPSEEK, "expert_parallel_size": 8, "sequence_parallel": False},
            "out_of_range",
            "derive.expert_parallel_size",
        ),
        (
            "none",
            {**DEEPSEEK, "expert_parallel_size": 8, "workload": "uneven"},
            "outside_measured_range",
            "derive.workload",
        ),
        (
            "none",
            {**DEEPSEEK, "expert_parallel_size": 16, "cluster": {"num_ranks": 16, "gpus_per_node": 8}},
            "missing_field",
            "derive.cluster.inter_node",
        ),
        ("transformer_engine", {"sequence_parallel": False}, "out_of_range", "derive.sequence_parallel"),
        ("transformer_engine", {"fused": {}}, "out_of_range", "derive.fused"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(rules: str, changes: dict[str, Any], code: str, where: str) -> None:
    with pytest.raises(Exception) as raised:
        derived(document(rules, **changes))
    error: Any = raised.value
    assert (error.code, error.where) == (code, where), error.message


def test_heads_that_ranks_do_not_divide_are_named() -> None:
    given = document(
        model="llama-3.1-70b", tp_size=6, cluster={"num_ranks": 6, "gpus_per_node": 6}, sequence_tokens=6144
    )
    error = refused(given)
    assert (error.code, error.where) == ("out_of_range", "derive.tp_size")
    assert "64 of q" in error.message


# --- examples and files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["derived", "transformer_engine", "experts"])
def test_a_derived_example_gives_the_same_explicit_problem_twice_and_read_back(name: str) -> None:
    given = json.loads((EXAMPLES / f"{name}.json").read_text())
    first, second = derived(given).problem, derived(given).problem
    assert canonical_bytes(dump_model(first)) == canonical_bytes(dump_model(second))
    assert validate(CompassProblem, dump_model(first)).sorted() == first


def test_the_box_of_nvlink_pairs_over_pcie_fuses_what_waits_for_its_links() -> None:
    problem = validate(CompassProblem, json.loads((EXAMPLES / "hybrid.json").read_text())).sorted()
    solution, _ = solve(problem, None, Limits())
    chosen = {choice.operator_id: choice.variant for choice in solution.choices}
    # fc1 multiplies for 8.7 ms beside 7.3 ms of gathering: two directions only slow its GEMM down
    assert chosen == {
        "qkv_fprop": "double_ring",
        "proj_fprop": "double_ring",
        "fc2_fprop": "double_ring",
        "fc1_fprop": "single_ring",
    }


def test_files_are_named_by_digest_and_not_by_path(tmp_path: Path) -> None:
    sizes = {"hidden": 4096, "num_layers": 2, "num_heads": 32, "num_kv_heads": 8, "ffn": 14336, "vocab": 1000}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sizes.json").write_text(json.dumps(sizes))
    made = derived(document(model="mine/sizes.json"), base_folder=str(tmp_path))
    assert list(made.arrays) == ["sizes.json"]
    assert made.derive["model"] == "sizes.json"
    assert {operator.count for operator in made.problem.operators} == {2}


def test_the_command_line_may_choose_another_profile() -> None:
    assert derived(document(), profile="b200-sxm").profile == "b200-sxm"
    roofline = derived(document(sequence_tokens=65536), extrapolate="roofline")
    assert roofline.derive["extrapolate"] == "roofline"


def test_a_relaxation_names_the_field_that_the_file_has() -> None:
    relaxable = derived(document()).relaxable
    assert relaxable["operators.fc1_fprop.allowed_strategies"] == (
        "derive.allowed_strategies",
        '["sequential", "inter_decom", "intra_fusion"]',
    )
    given = document(allowed_strategies=["inter_decom"])
    assert operators(given)["fc1_fprop"].allowed_strategies == ("inter_decom",)


def test_the_derived_form_rejects_unknown_fields() -> None:
    given = document()
    with pytest.raises(Exception, match="micro_batches"):
        validate(CompassDerivedProblem, {**given, "derive": {**given["derive"], "micro_batchs": 2}})
