"""config.json files as published, with their naming traps: each is read, or refused with the reason."""

import importlib.util
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles.errors import ProfileError
from profiles.geometry import load_model, model_names
from profiles.geometry.config_json import FAMILIES
from profiles.geometry.library import model_of, read_model
from profiles.geometry.spec import ModelSpec

REAL = os.environ.get("PLAN_REAL_DATA")
real_data = pytest.mark.skipif(not REAL, reason="PLAN_REAL_DATA names no folder of real configs")

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 128_256,
    "tie_word_embeddings": False,
}
MLA = {
    "model_type": "deepseek_v3",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "topk_method": "noaux_tc",
}


def read(config: dict[str, object], **changes: object) -> ModelSpec:
    return model_of({key: value for key, value in {**config, **changes}.items() if value != "absent"}, "config.json")


def refused(config: dict[str, object], **changes: object) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        read(config, **changes)
    return caught.value


# --- the real files -----------------------------------------------------------------------------------------------

BUILT_IN = {
    "deepseek-v3": ("deepseek-ai--DeepSeek-V3_config.json", "deepseek-ai--DeepSeek-R1_config.json"),
    "deepseek-v3.2": ("deepseek-ai--DeepSeek-V3.2_config.json",),
    "deepseek-v2": ("deepseek_v3_repo/config_236B.json",),
    "deepseek-v2-lite": ("deepseek_v3_repo/config_16B.json",),
    "qwen3-235b-a22b": ("Qwen--Qwen3-235B-A22B_config.json",),
    "qwen3-30b-a3b": ("Qwen--Qwen3-30B-A3B_config.json",),
    "qwen3-32b": ("Qwen--Qwen3-32B_config.json",),
    "qwen3-8b": ("Qwen--Qwen3-8B_config.json",),
    "mixtral-8x7b": ("mistralai--Mixtral-8x7B-v0.1_config.json",),
    "mixtral-8x22b": ("mistralai--Mixtral-8x22B-v0.1_config.json",),
    "gpt-oss-120b": ("openai--gpt-oss-120b_config.json",),
    "gpt-oss-20b": ("openai--gpt-oss-20b_config.json",),
}


@real_data
@pytest.mark.parametrize(("name", "file"), [(name, file) for name, files in BUILT_IN.items() for file in files])
def test_a_built_in_model_is_what_its_config_says(name: str, file: str) -> None:
    given = read_model(Path(REAL or "") / "model_configs" / file)
    assert given.model_copy(update={"name": name}).geometry() == load_model(name)


@real_data
@pytest.mark.parametrize("file", ["config_671B.json", "config_v3.1.json"])
def test_deepseeks_own_config_and_hugging_faces_agree(file: str) -> None:
    own = read_model(Path(REAL or "") / "model_configs" / "deepseek_v3_repo" / file).geometry()
    assert own.runs == load_model("deepseek-v3").runs
    # Its own config does not speak of multi-token prediction.
    assert own.mtp_layers == 0


@real_data
def test_every_real_config_is_read() -> None:
    files = sorted((Path(REAL or "") / "model_configs").rglob("*.json"))
    assert len(files) >= 15
    for file in files:
        assert read_model(file).geometry().parameters > 8e9


PACKAGE = importlib.util.find_spec("aiconfigurator_core")
CONFIGS = Path(PACKAGE.origin).parent / "model_configs" if PACKAGE is not None and PACKAGE.origin else None


@pytest.mark.skipif(CONFIGS is None, reason="aiconfigurator-core, whose model configs are read here, is not installed")
def test_a_package_of_configs_is_read_or_refused_with_the_reason() -> None:
    assert CONFIGS is not None
    totals: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for file in sorted(CONFIGS.glob("*.json")):
        try:
            model = read_model(file).geometry()
            totals[file.name] = model.parameters + (model.mtp_parameters if model.name.startswith("Xiaomi") else 0)
        except ProfileError as error:
            reasons[file.name] = error.message
    if not totals:
        pytest.skip("this version of aiconfigurator-core carries no model configs")
    # Model pages of Hugging Face.
    published = {
        "meta-llama--Meta-Llama-3.1-8B_config.json": 8_030_261_248,
        "meta-llama--Meta-Llama-3.1-70B_config.json": 70_553_706_496,
        "meta-llama--Meta-Llama-3.1-405B_config.json": 405_853_388_800,
        "Qwen--Qwen3-0.6B_config.json": 596_049_920,
        "Qwen--Qwen3-1.7B_config.json": 1_720_574_976,
        "moonshotai--Kimi-K2-Instruct_config.json": 1_026_408_232_448,
    }
    for name, total in published.items():
        assert totals.get(name, total) == total
    # Model cards: GLM-5 744B, MiniMax-M2 230B, Qwen3-Coder 480B, MiMo 7.83B with its prediction layer.
    for name, billions in {
        "zai-org--GLM-5_config.json": 744,
        "MiniMaxAI--MiniMax-M2.5_config.json": 230,
        "Qwen--Qwen3-Coder-480B-A35B-Instruct_config.json": 480,
        "XiaomiMiMo--MiMo-7B-Base_config.json": 7.83,
    }.items():
        if name in totals:
            assert totals[name] / 1e9 == pytest.approx(billions, rel=0.01)
    for name, reason in reasons.items():
        assert name[:60] in reason
        assert "not modelled" in reason or "quantisation config" in reason or "Infinity" in reason


# --- the traps ----------------------------------------------------------------------------------------------------


def test_experts_go_by_four_names() -> None:
    for name in ("n_routed_experts", "num_experts", "num_local_experts", "n_experts"):
        spec = read(MLA, **{"n_routed_experts": "absent", name: 16})
        assert spec.moe is not None
        assert spec.moe.num_experts == 16


def test_two_names_that_disagree_are_refused() -> None:
    error = refused(MLA, num_experts=9)
    assert (error.code, error.where) == ("out_of_range", "n_routed_experts")
    assert "n_routed_experts 8, num_experts 9" in error.message
    assert read(MLA, num_experts=8) == read(MLA)


def test_no_query_compression_is_null_or_zero() -> None:
    null, zero = read(MLA, q_lora_rank=None), read(MLA, q_lora_rank=0)
    assert null == zero
    assert null.mla is not None
    assert null.mla.q_lora is None
    names = [weight.name for weight in null.geometry().runs[0].kind.weights]
    assert "q" in names
    assert "q_a" not in names


def test_a_head_is_hidden_over_heads_unless_it_is_stated() -> None:
    narrow, wide = read(LLAMA, head_dim=None).geometry(), read(LLAMA, head_dim=256).geometry()
    assert narrow == read(LLAMA, head_dim=128).geometry()
    # q and o 4096 x 8192, k and v 4096 x 2048: twice as wide.
    assert wide.parameters_by_part["attention"] == 2 * narrow.parameters_by_part["attention"]
    assert "state head_dim" in refused(LLAMA, hidden_size=4095).message


def test_a_head_that_is_left_out_is_what_the_models_own_code_takes() -> None:
    # transformers, configuration_qwen3.py: head_dim = 128; configuration_gpt_oss.py: 64. Not 4096 / 64 and 4096 / 32.
    qwen = {**LLAMA, "model_type": "qwen3", "num_attention_heads": 64}
    assert read(qwen) == read(qwen, head_dim=128)
    oss = {**LLAMA, "model_type": "gpt_oss", "num_local_experts": 4, "num_experts_per_tok": 2}
    assert read(oss) == read(oss, head_dim=64)


def test_tied_embeddings_are_counted_once() -> None:
    tied, untied = read(LLAMA, tie_word_embeddings=True).geometry(), read(LLAMA).geometry()
    assert untied.parameters - tied.parameters == 128_256 * 4096
    assert untied.linear_flops_per_token == tied.linear_flops_per_token


def test_dense_layers_go_by_five_names() -> None:
    first = [run.count for run in read(MLA, first_k_dense_replace=2).geometry().runs]
    assert first == [2, 2]
    assert read(MLA, first_k_dense_replace="absent", n_dense_layers=2) == read(MLA, first_k_dense_replace=2)
    listed = ["dense", "dense", "sparse", "sparse"]
    assert read(MLA, first_k_dense_replace=None, mlp_layer_types=listed) == read(MLA, first_k_dense_replace=2)
    assert read(MLA, moe_layer_freq=[0, 0, 1, 1]) == read(MLA, first_k_dense_replace=2)
    odd = read(MLA, first_k_dense_replace=0, mlp_only_layers=[2]).geometry()
    assert [(run.kind.name, run.count) for run in odd.runs] == [("moe", 2), ("dense", 1), ("moe", 1)]
    every = read(MLA, first_k_dense_replace=0, decoder_sparse_step=2).geometry()
    assert [run.kind.name for run in every.runs] == ["dense", "moe", "dense", "moe"]


def test_a_correction_bias_comes_with_the_routing_that_needs_it() -> None:
    with_bias, without = read(MLA).geometry(), read(MLA, topk_method="greedy").geometry()
    assert with_bias.parameters - without.parameters == 3 * 8


@pytest.mark.parametrize(
    ("config", "total"),
    [
        # Model pages of Hugging Face: mistralai/Mistral-7B-v0.1, Qwen/Qwen2.5-7B, Qwen/Qwen1.5-MoE-A2.7B,
        # allenai/OLMoE-1B-7B-0924. Biases, q/k norms and the shared expert's gate follow from the model_type alone.
        (
            {
                "model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                "num_key_value_heads": 8, "intermediate_size": 14_336, "vocab_size": 32_000, "sliding_window": 4096,
            },
            7_241_732_096,
        ),
        (
            {
                "model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
                "num_key_value_heads": 4, "intermediate_size": 18_944, "vocab_size": 152_064,
                "use_sliding_window": False, "sliding_window": 131_072, "max_window_layers": 28,
            },
            7_615_616_512,
        ),
        (
            {
                "model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
                "num_key_value_heads": 16, "intermediate_size": 5632, "vocab_size": 151_936, "num_experts": 60,
                "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
                "decoder_sparse_step": 1, "use_sliding_window": False, "sliding_window": 32_768,
            },
            14_315_784_192,
        ),
        (
            {
                "model_type": "olmoe", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16,
                "num_key_value_heads": 16, "intermediate_size": 1024, "vocab_size": 50_304, "num_experts": 64,
                "num_experts_per_tok": 8,
            },
            6_919_161_856,
        ),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_what_a_model_type_implies_is_counted(config: dict[str, object], total: int) -> None:
    model = read(config).geometry()
    assert model.parameters == total
    names = [weight.name for weight in model.runs[0].kind.weights]
    assert len(set(names)) == len(names)


def test_windows_slide_where_the_config_says() -> None:
    base = {**LLAMA, "sliding_window": 4096}
    assert {run.kind.attention.window for run in read(base, model_type="mistral").geometry().runs} == {4096}
    assert read(base, use_sliding_window=False).sliding is None
    some = read(base, use_sliding_window=True, max_window_layers=30).sliding
    assert some is not None
    assert some.layers == [30, 31]
    types = ["full_attention", "sliding_attention"] * 16
    listed = read(base, layer_types=types).sliding
    assert listed is not None
    assert listed.layers == list(range(1, 32, 2))
    assert "expected 32 layer_types, got 2" in refused(base, layer_types=types[:2]).message


@pytest.mark.parametrize(
    ("config", "changes", "code", "where", "says"),
    [
        (LLAMA, {"model_type": "qwen3_next"}, "unknown_model", "model_type", "'qwen3_next' is not modelled"),
        (LLAMA, {"model_type": "absent"}, "missing_field", "model_type", "expected model_type, one of llama"),
        (LLAMA, {"model_type": "qwen3_vl", "text_config": {}, "vision_config": {"depth": 27}}, "unknown_model",
         "vision_config", "several modalities"),
        (LLAMA, {"model_type": "nemotron_h", "hybrid_override_pattern": "M-M*"}, "unknown_model",
         "hybrid_override_pattern", "linear attention and state-space layers are not modelled"),
        (LLAMA, {"layer_types": ["linear_attention"] * 32}, "unknown_model", "layer_types", "linear attention layers"),
        (LLAMA, {"layer_types": ["chunked_attention"] * 32}, "unknown_model", "layer_types", "'chunked_attention'"),
        (LLAMA, {"mlp_bias": True}, "unknown_model", "mlp_bias", "not modelled"),
        (LLAMA, {"hidden_size": "absent"}, "missing_field", "hidden_size", "hidden_size or dim, got none"),
        (LLAMA, {"hidden_size": "4096"}, "wrong_type", "hidden_size", "whole number, got '4096'"),
        (LLAMA, {"hidden_size": True}, "wrong_type", "hidden_size", "whole number, got True"),
        (LLAMA, {"hidden_size": 4096.5}, "wrong_type", "hidden_size", "whole number"),
        (LLAMA, {"num_hidden_layers": 0}, "out_of_range", "num_hidden_layers", ">= 1, got 0"),
        (LLAMA, {"num_hidden_layers": -1}, "out_of_range", "num_hidden_layers", ">= 0, got -1"),
        (MLA, {"num_hidden_layers": 2**62}, "out_of_range", "num_hidden_layers", "at most 10000 layers"),
        (LLAMA, {"tie_word_embeddings": "no"}, "wrong_type", "tie_word_embeddings", "true or false"),
        (LLAMA, {"num_key_value_heads": 3}, "out_of_range", None, "num_kv_heads to divide num_heads 32, got 3"),
        ({**LLAMA, "model_type": "qwen3"}, {"num_key_value_heads": "absent"}, "missing_field", "num_key_value_heads",
         "expected num_key_value_heads"),
        (MLA, {"num_experts_per_tok": 9}, "out_of_range", "moe", "top_k <= num_experts = 8, got 9"),
        (MLA, {"index_topk": 4}, "unknown_model", "index_topk", "sparse attention"),
        (MLA, {"model_type": "deepseek_v32"}, "missing_field", "index_n_heads", "index_n_heads"),
        (MLA, {"attention_bias": True}, "unknown_model", "attention_bias", "latent"),
        (LLAMA, {"num_key_value_heads": 0}, "out_of_range", "num_key_value_heads", ">= 1, got 0"),
        (LLAMA, {"head_dim": 0}, "out_of_range", "head_dim", ">= 1, got 0"),
        (LLAMA, {"use_sliding_window": "yes"}, "wrong_type", "use_sliding_window", "true or false"),
        ({**LLAMA, "model_type": "qwen3"}, {"head_dim": None}, "missing_field", "head_dim", "head_dim"),
        ({**LLAMA, "model_type": "qwen3_moe"}, {}, "missing_field", "head_dim", "every version"),
        ({**LLAMA, "model_type": "gpt_oss"}, {"sliding_window": 128}, "missing_field", "layer_types", "which layers"),
        (MLA, {"q_lora_rank": "absent"}, "missing_field", "q_lora_rank", "null or 0"),
        (MLA, {"first_k_dense_replace": "absent"}, "missing_field", "first_k_dense_replace", "n_dense_layers"),
        (MLA, {"n_shared_experts": "absent"}, "missing_field", "n_shared_experts", "null or 0"),
        (MLA, {"topk_method": "absent"}, "missing_field", "topk_method", "topk_method or score_func"),
        (MLA, {"topk_method": 3}, "missing_field", "topk_method", "topk_method or score_func"),
        (MLA, {"decoder_sparse_step": 0}, "out_of_range", "decoder_sparse_step", ">= 1, got 0"),
        (MLA, {"moe_layer_freq": 0}, "out_of_range", "moe_layer_freq", ">= 1, got 0"),
        (MLA, {"moe_layer_freq": []}, "out_of_range", "moe_layer_freq", "each of 4 layers, got 0"),
        (MLA, {"moe_layer_freq": [0, 1, 2, 1]}, "out_of_range", "moe_layer_freq", "0 or 1, got 2"),
        (MLA, {"mlp_layer_types": ["dense", "moe", "moe", "moe"]}, "out_of_range", "mlp_layer_types", "got 'moe'"),
        (MLA, {"mlp_layer_types": ["dense"]}, "out_of_range", "mlp_layer_types", "each of 4 layers, got 1"),
        (MLA, {"mlp_only_layers": ["0"]}, "wrong_type", "mlp_only_layers", "numbers of layers, got '0'"),
        (MLA, {"intermediate_size": "128", "first_k_dense_replace": 0}, "wrong_type", "intermediate_size", "'128'"),
        ({**MLA, "model_type": "qwen2_moe"}, {}, "missing_field", "shared_expert_intermediate_size", "state 0"),
        ({**MLA, "model_type": "minimax_m2", "use_qk_norm": True, "head_dim": 16}, {}, "missing_field",
         "use_routing_bias", "correction bias"),
        ({"producer": {"name": "m"}, "quantization": {"a": 1}}, {}, "missing_field", "hidden_size", "quantisation"),
        ({}, {}, "missing_field", "model_type", "model_type"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_place(
    config: dict[str, object], changes: dict[str, object], code: str, where: str | None, says: str
) -> None:
    error = refused(config, **changes)
    assert (error.code, error.where) == (code, where)
    assert says in error.message


HOSTILE = [None, True, False, -1, 0, 1, 3, 10**6, 2**70, 1.5, float("nan"), float("inf"), "", "4", "sigmoid", [], [1],
           [[1]], ["dense"], ["linear_attention"], [None] * 4, [0, 0, 1, 1], {}, {"a": 1}]  # fmt: skip
KEYS = sorted({*LLAMA, *MLA, "head_dim", "layer_types", "sliding_window", "moe_layer_freq", "mlp_only_layers",
               "mlp_layer_types", "indexer_types", "decoder_sparse_step", "max_window_layers", "use_sliding_window",
               "attention_bias", "score_func", "hidden", "_class_name", "n_layers"})  # fmt: skip


VALUES = st.sampled_from(HOSTILE)


@given(kind=st.sampled_from(sorted(FAMILIES)), changes=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))
def test_whatever_a_config_holds_is_read_or_refused(kind: str, changes: dict[str, object]) -> None:
    try:
        assert model_of({**MLA, "model_type": kind, **changes}, "config.json").geometry().parameters > 0
    except ProfileError as error:
        assert error.message.startswith("config.json: ")


def test_a_file_is_named_after_its_folder_or_itself(tmp_path: Path) -> None:
    folder = tmp_path / "My-Model"
    folder.mkdir()
    for path in (folder / "config.json", tmp_path / "other_config.json"):
        path.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert load_model(folder / "config.json").name == "My-Model"
    assert load_model(str(tmp_path / "other_config.json")).name == "other"
    with pytest.raises(ProfileError, match=r"cannot read the model no\.json"):
        load_model("./no.json")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hidden": NaN}', '{"a": 1, "a": 2}', '"llama"'])
def test_a_file_that_is_no_config_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError):
        load_model(path)


def test_every_family_is_held_against_a_published_count() -> None:
    # Here or in test_geometry_models.py; a family without one must not be added.
    held = {"llama", "mistral", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "olmoe", "mixtral", "gpt_oss"}
    held |= {"deepseek_v2", "deepseek_v3"}
    in_the_package = {"mimo", "kimi_k2", "minimax_m2", "glm_moe_dsa", "deepseek_v32"}
    assert set(FAMILIES) == held | in_the_package
    assert len(model_names()) == 15
