"""Language models: published parameter counts, FLOPs and cache sizes, part by part and shard by shard."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles.errors import ProfileError, UnknownNameError
from profiles.geometry import ModelGeometry, load_model, model_names
from profiles.geometry.library import model_of

ALL = model_names()

EXACT = {
    # Totals of the published safetensors files (model pages of Hugging Face), multi-token prediction left out.
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v3": 671_026_419_200,
    "qwen3-8b": 8_190_735_360,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
}

PUBLISHED = [
    # name, billions in all, billions active, whether the active ones count the embedding; then who says so.
    ("deepseek-v3", 671, 37, False),  # DeepSeek-V3 Technical Report, arXiv 2412.19437, abstract
    ("deepseek-v2", 236, 21, True),  # DeepSeek-V2, arXiv 2405.04434, abstract
    ("deepseek-v2-lite", 15.7, 2.4, False),  # DeepSeek-V2, arXiv 2405.04434, appendix B
    ("qwen3-235b-a22b", 235, 22, True),  # Qwen3 Technical Report, arXiv 2505.09388, table 2
    ("qwen3-30b-a3b", 30.5, 3.3, True),  # model card: 30.5B in total and 3.3B activated
    ("qwen3-32b", 32.8, 32.8, True),  # model card: 32.8B
    ("qwen3-8b", 8.2, 8.2, True),  # model card: 8.2B
    ("mixtral-8x7b", 46.7, 12.9, True),  # mistral.ai, "Mixtral of experts": 46.7B total, 12.9B per token
    ("mixtral-8x22b", 141, 39, True),  # mistral.ai, "Cheaper, better, faster, stronger": 39B out of 141B
    ("gpt-oss-120b", 116.83, 5.13, False),  # gpt-oss model card, arXiv 2508.10925, table 1
    ("gpt-oss-20b", 20.91, 3.61, False),  # gpt-oss model card, arXiv 2508.10925, table 1
    ("llama-3.1-8b", 8.03, 8.03, True),  # The Llama 3 Herd of Models, arXiv 2407.21783: 8B, 70B, 405B
    ("llama-3.1-70b", 70.6, 70.6, True),
    ("llama-3.1-405b", 406, 406, True),
]


@pytest.mark.parametrize(("name", "total"), EXACT.items())
def test_totals_are_those_of_the_published_weights(name: str, total: int) -> None:
    assert load_model(name).parameters == total


@pytest.mark.parametrize(("name", "total", "active", "embedding_counts"), PUBLISHED)
def test_totals_agree_with_the_papers(name: str, total: float, active: float, embedding_counts: bool) -> None:
    model = load_model(name)
    assert model.parameters / 1e9 == pytest.approx(total, rel=0.01)
    counted = model.active_parameters - (0 if embedding_counts else model.parameters_by_part["embeddings"])
    # Two digits are published: 37 is anything from 36.5 to 37.5, 2.4 from 2.35 to 2.45.
    assert counted / 1e9 == pytest.approx(active, rel=0.025)


def test_gpt_oss_is_made_of_the_parts_in_its_model_card() -> None:
    # arXiv 2508.10925, table 1: MLP 114.71B, attention 0.96B, embed + unembed 1.16B; 19.12, 0.64, 1.16 for the 20b.
    for name, mlp, attention in (("gpt-oss-120b", 114.71, 0.96), ("gpt-oss-20b", 19.12, 0.64)):
        parts = load_model(name).parameters_by_part
        assert round((parts["experts"] + parts["router"]) / 1e9, 2) == mlp
        assert round(parts["attention"] / 1e9, 2) == attention
        assert round((parts["embeddings"] + parts["head"]) / 1e9, 2) == 1.16


def test_multi_token_prediction_is_counted_apart() -> None:
    # DeepSeek-V3, README_WEIGHTS.md: 671B of the main model, 11.5B unique parameters of the one MTP module.
    model = load_model("deepseek-v3")
    assert model.mtp_layers == 1
    assert model.mtp_parameters / 1e9 == pytest.approx(11.5, rel=0.01)
    assert model.parameters == sum(model.parameters_by_part.values()) == 671_026_419_200


def test_the_indexer_is_all_that_v32_adds_to_v3() -> None:
    # wq_b 1536 x 64 x 128, wk 7168 x 128, a layer norm of 128, weights 7168 x 64, in each of 61 layers.
    old, new = load_model("deepseek-v3"), load_model("deepseek-v3.2")
    added = 61 * (1536 * 8192 + 7168 * 128 + 2 * 128 + 7168 * 64)
    assert new.parameters - old.parameters == new.parameters_by_part["indexer"] == added


def test_cache_bytes_a_token_are_those_published() -> None:
    # "Insights into DeepSeek-V3", arXiv 2505.09343, table 1: 70.272 KB (DeepSeek-V3), 516.096 KB (LLaMA-3.1 405B).
    assert load_model("deepseek-v3").kv_bytes_per_token("bf16") == 70_272
    assert load_model("llama-3.1-405b").kv_bytes_per_token("bf16") == 516_096
    # FinDEP page, section 6, a layer: DeepSeek-V2 576 x 2, Qwen3-235B 2 x 4 x 128 x 2.
    assert load_model("deepseek-v2").kv_bytes_per_token("bf16") == 60 * 1152
    assert load_model("qwen3-235b-a22b").kv_bytes_per_token("bf16") == 94 * 2048


@pytest.mark.parametrize(
    ("name", "gflop", "rel"),
    [("deepseek-v2", 155, 0.005), ("deepseek-v3", 250, 0.005), ("llama-3.1-405b", 2448, 0.015)],
)
def test_training_flops_a_token_are_those_published(name: str, gflop: float, rel: float) -> None:
    # "Insights into DeepSeek-V3", arXiv 2505.09343, table 2: GFLOP a token at length 4,096, causal; three forwards.
    assert 3 * load_model(name).prefill_flops(4096) / 4096 / 1e9 == pytest.approx(gflop, rel=rel)


def test_a_dense_model_computes_two_flops_a_parameter_that_multiplies() -> None:
    # Llama-3.1 8B: all but the embedding (a look-up) and 65 norms of 4,096.
    model = load_model("llama-3.1-8b")
    assert model.linear_flops_per_token == 2 * (8_030_261_248 - 128_256 * 4096 - 65 * 4096)
    # Token 1,000 attends to 1,000 keys: scores and values, 2 x 2 x 32 heads x 128, in 32 layers.
    assert model.decode_flops(1000) - model.linear_flops_per_token == 32 * 4 * 32 * 128 * 1000


def test_decoding_meets_the_latent_itself() -> None:
    # FinDEP page, section 6: absorbed n_h S_ctx (2 c + d_r), expanded n_h S_ctx (d_k + d_v); a multiply-add is two.
    model = load_model("deepseek-v3")
    assert model.attention_flops(5000) == 61 * 2 * 128 * 5000 * (2 * 512 + 64)
    assert model.attention_flops(5000, absorbed=False) == 61 * 2 * 128 * 5000 * (192 + 128)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt-oss-20b", "deepseek-v3", "deepseek-v3.2"])
@given(tokens=st.integers(1, 200))
def test_prefill_is_the_sum_over_its_tokens(name: str, tokens: int) -> None:
    model = load_model(name)
    one_by_one = sum(model.attention_flops(position, absorbed=False) for position in range(1, tokens + 1))
    assert model.prefill_flops(tokens) == tokens * model.linear_flops_per_token + one_by_one


def test_prefill_sums_past_a_window_and_past_the_indexers_choice() -> None:
    for name, tokens in (("gpt-oss-20b", 1000), ("deepseek-v3.2", 3000)):
        model = load_model(name)
        one_by_one = sum(model.attention_flops(position, absorbed=False) for position in range(1, tokens + 1))
        assert model.prefill_flops(tokens) == tokens * model.linear_flops_per_token + one_by_one


def test_a_sliding_layer_keeps_its_window_and_no_more() -> None:
    # gpt-oss-20b: 24 layers, every other one slides over 128 tokens; 2 x 8 x 64 numbers a token, layer.
    model = load_model("gpt-oss-20b")
    assert [(kind.name, count) for kind, count in model.kinds()] == [("moe_sliding", 12), ("moe", 12)]
    assert len(model.runs) == 24
    assert model.kv_bytes(100, "bf16") == 100 * model.kv_bytes_per_token("bf16") == 100 * 24 * 2048
    assert model.kv_bytes(10_000, "bf16") == 12 * 2048 * (10_000 + 128)
    assert model.attention_flops(10_000) == 12 * 4 * 64 * 64 * (10_000 + 128)


@pytest.mark.parametrize("name", ALL)
def test_parts_matrices_and_totals_agree(name: str) -> None:
    model = load_model(name)
    assert model.name == name
    layers = sum(count * kind.parameters for kind, count in model.kinds())
    assert layers + sum(weight.parameters for weight in model.ends) == model.parameters
    assert sum(run.count for run in model.runs) == model.num_layers
    products = sum(count * kind.linear_flops_per_token for kind, count in model.kinds())
    assert products + 2 * model.vocab * model.hidden == model.linear_flops_per_token
    for kind, _ in model.kinds():
        assert len({weight.name for weight in kind.weights}) == len(kind.weights)
        assert sum(kind.on_rank()) == sum(kind.parameters_by_part.values()) == kind.parameters
        assert sum(kind.linear_flops_by_part.values()) == kind.linear_flops_per_token
    assert model.weight_bytes("fp8") == model.parameters
    assert model.weight_bytes("bf16") == 2 * model.parameters


def test_a_shard_of_deepseek_v3_is_what_the_memory_page_says() -> None:
    # Memory page, G10: expert degree 64: 17,117,648,384 dense + 10,217,324,544 expert parameters.
    model = load_model("deepseek-v3")
    shards = [(kind.on_rank(expert_ranks=64), count) for kind, count in model.kinds()]
    dense = sum(own * count for (own, _), count in shards) + sum(weight.parameters for weight in model.ends)
    assert (dense, sum(experts * count for (_, experts), count in shards)) == (17_117_648_384, 10_217_324_544)


def test_what_attention_and_expert_devices_compute_is_told_apart() -> None:
    # DeepSeek-V2-Lite, a token and MoE layer: 6 experts and the two shared ones, 3 products of 2048 x 1408 each.
    flops = load_model("deepseek-v2-lite").runs[-1].kind.linear_flops_by_part
    assert flops["experts"] == 2 * 6 * 3 * 2048 * 1408
    assert flops["shared_experts"] == 2 * 2 * 3 * 2048 * 1408
    assert flops["router"] == 2 * 2048 * 64
    # FinDEP page, section 6, queries not compressed: M n_h (d_n + d_r) + M (c + d_r) + c n_h (d_n + d_v) + n_h d_v M.
    assert flops["attention"] == 2 * (2048 * 16 * 192 + 2048 * 576 + 512 * 16 * 256 + 16 * 128 * 2048)


def test_tensor_parallelism_cuts_matrices_and_copies_norms() -> None:
    # Llama-3.1 8B on 8 ranks: (q, o 2 x 4096^2, k and v 2 x 4096 x 1024, ffn 3 x 4096 x 14336) / 8, two norms whole.
    kind = load_model("llama-3.1-8b").runs[0].kind
    whole = 2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14_336
    assert kind.on_rank(tensor_ranks=8) == (whole // 8 + 2 * 4096, 0)
    # On 16 ranks each of the 8 key-value heads has two copies.
    kv = 2 * 4096 * 1024
    assert kind.on_rank(tensor_ranks=16) == ((whole - kv) // 16 + kv // 8 + 2 * 4096, 0)


def test_a_shard_that_does_not_divide_is_refused_by_name() -> None:
    kind = load_model("llama-3.1-8b").runs[0].kind
    with pytest.raises(ProfileError, match="expected tensor_ranks to divide the 32 of q, got 3"):
        kind.on_rank(tensor_ranks=3)
    with pytest.raises(ProfileError, match="expected expert_ranks to divide the 256 of expert_gate, got 3"):
        load_model("deepseek-v3").runs[-1].kind.on_rank(expert_ranks=3)


def model(**sizes: object) -> ModelGeometry:
    return model_of(sizes, "a model").geometry()


def test_gpt3_with_biases_layer_norms_and_learned_positions() -> None:
    # Memory page, G8: GPT 175B, vocabulary padded to 51,200: 174,615,846,912.
    gpt = model(
        hidden=12_288, num_layers=96, num_heads=96, ffn=49_152, vocab=51_200, positions=2048,
        tied=True, norm="layer", bias=True, gated=False,
    )  # fmt: skip
    assert gpt.parameters == 174_615_846_912
    assert "head" not in gpt.parameters_by_part
    assert gpt.head_flops_per_token == 2 * 51_200 * 12_288


def test_dense_layers_may_stand_anywhere() -> None:
    moe = {"num_experts": 4, "top_k": 2, "ffn": 8, "dense_layers": [1, 3]}
    mixed = model(hidden=16, num_layers=4, num_heads=2, ffn=32, vocab=10, moe=moe)
    assert [run.kind.name for run in mixed.runs] == ["moe", "dense", "moe", "dense"]


@pytest.mark.parametrize(
    ("changes", "code", "where", "says"),
    [
        ({"hiden": 16}, "unknown_field", "hiden", "did you mean 'hidden'"),
        ({"num_heads": 3}, "out_of_range", None, "state head_dim"),
        ({"num_kv_heads": 3}, "out_of_range", None, "num_kv_heads to divide num_heads 4, got 3"),
        ({"ffn": 0}, "out_of_range", None, "state ffn"),
        ({"moe": {"num_experts": 2, "top_k": 3, "ffn": 8}}, "out_of_range", "moe", "top_k <= num_experts = 2, got 3"),
        ({"sliding": {"window": 8, "layers": [2]}}, "out_of_range", None, "below num_layers = 2, got 2"),
        ({"indexer": {"num_heads": 1, "head_dim": 1, "top_k": 1}}, "out_of_range", None, "goes with mla"),
        ({"mla": {"kv_lora": 8, "nope": 4, "rope": 4, "v": 4}, "bias": "qkv"}, "out_of_range", None, "without bias"),
        ({"vocab": "10"}, "wrong_type", "vocab", "integer"),
        ({"num_layers": 10**9}, "out_of_range", "num_layers", "10000"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes: dict[str, object], code: str, where: str, says: str) -> None:
    with pytest.raises(ProfileError) as caught:
        model(**{"hidden": 16, "num_layers": 2, "num_heads": 4, "ffn": 32, "vocab": 10, **changes})
    assert (caught.value.code, caught.value.where) == (code, where)
    assert says in caught.value.message


def test_an_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'qwen3-8b'") as caught:
        load_model("qwen3-7b")
    assert caught.value.code == "unknown_model"
    assert caught.value.known == tuple(ALL)
    with pytest.raises(ProfileError, match=r"wan2\.1-14b is a diffusion transformer"):
        load_model("wan2.1-14b")


def test_lengths_below_one_are_refused() -> None:
    with pytest.raises(ProfileError, match="expected context >= 1, got 0"):
        load_model("qwen3-8b").decode_flops(0)
    with pytest.raises(ProfileError, match="expected tokens >= 1, got 0"):
        load_model("qwen3-8b").prefill_flops(0)


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("qwen3-235b", "qwen3-235b-a22b"), ("Mixtral-8x7b-instruct", "mixtral-8x7b"), ("gpt-oss", "gpt-oss-20b")],
)
def test_an_unknown_model_names_the_one_that_goes_on_from_it_else_the_closest(asked: str, nearest: str) -> None:
    # By spelling alone qwen3-235b is nearer to qwen3-32b.
    with pytest.raises(ProfileError, match=f"did you mean '{nearest}'"):
        load_model(asked)


def test_a_published_name_that_is_no_file_names_the_built_in_model() -> None:
    with pytest.raises(
        ProfileError, match="no file Qwen3-235B-A22B; did you mean the built-in 'qwen3-235b-a22b'"
    ) as it:
        load_model("Qwen/Qwen3-235B-A22B")
    assert it.value.code == "unknown_model"
    with pytest.raises(ProfileError, match="cannot read the model"):
        load_model("./somewhere/else.json")
