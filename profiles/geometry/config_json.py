"""A Hugging Face config.json, or one of DeepSeek's own, as a `ModelSpec`; or the reason why it is refused.

A config does not say everything: q/k norms, biases and sinks follow from `model_type`. So only the types listed in
`FAMILIES`, each held against a published parameter count (see the tests), are taken; all others are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from profiles.errors import ProfileError, nearest_name, shown
from profiles.geometry import config_fields as fields
from profiles.geometry.attention import QkNorm
from profiles.geometry.config_fields import Fields
from profiles.geometry.spec import MAX_LAYERS, ModelSpec
from profiles.validation import validate


@dataclass(frozen=True)
class Family:
    """What a model_type implies and its config.json does not say.

    `bias`: "stated" follows attention_bias. `experts_ffn`: whether intermediate_size is the experts' width.
    `head_dim`: what a config that leaves it out means: hidden / heads ("ratio"), the model library's own number
    (transformers: configuration_qwen3.py, configuration_gpt_oss.py), or nothing that holds for all versions (None).
    """

    latent: bool = False
    head_dim: int | Literal["ratio"] | None = "ratio"
    bias: Literal["stated", "qkv", "attention", "none"] = "stated"
    qk_norm: QkNorm = "none"
    sinks: bool = False
    experts: bool = False
    experts_ffn: bool = False
    expert_bias: bool = False
    router_bias: Literal["no", "yes", "noaux_tc", "use_routing_bias"] = "no"
    shared_gate: bool = False
    indexer: bool = False


FAMILIES: Mapping[str, Family] = {
    "llama": Family(),
    "mistral": Family(bias="none"),
    "mimo": Family(bias="qkv", head_dim=None),
    "qwen2": Family(bias="qkv"),
    "qwen3": Family(qk_norm="head", head_dim=128),
    "qwen2_moe": Family(bias="qkv", experts=True, shared_gate=True),
    "qwen3_moe": Family(qk_norm="head", head_dim=None, experts=True),
    "olmoe": Family(qk_norm="full", experts=True, experts_ffn=True),
    "mixtral": Family(bias="none", experts=True, experts_ffn=True),
    "minimax_m2": Family(
        bias="none", qk_norm="full", head_dim=None, experts=True, experts_ffn=True, router_bias="use_routing_bias"
    ),
    "gpt_oss": Family(
        bias="attention", sinks=True, head_dim=64, experts=True, experts_ffn=True, expert_bias=True, router_bias="yes"
    ),
    "deepseek_v2": Family(latent=True, experts=True),
    "deepseek_v3": Family(latent=True, experts=True, router_bias="noaux_tc"),
    "kimi_k2": Family(latent=True, experts=True, router_bias="noaux_tc"),
    "deepseek_v32": Family(latent=True, experts=True, router_bias="noaux_tc", indexer=True),
    "glm_moe_dsa": Family(latent=True, experts=True, router_bias="noaux_tc", indexer=True),
}

_NOT_MODELLED = (
    (("text_config", "vision_config", "audio_config"), "a model of several modalities is not modelled"),
    (
        ("hybrid_override_pattern", "layers_block_type", "mamba_num_heads", "ssm_state_size", "linear_num_key_heads"),
        "linear attention and state-space layers are not modelled",
    ),
    (("hybrid_layer_pattern",), "sliding layers with heads of their own are not modelled"),
    (("block_configs",), "layers that differ one by one are not modelled"),
    (("compress_ratios", "hc_mult"), "compressed attention and hyper-connections are not modelled"),
    (("cross_attention_layers", "is_encoder_decoder"), "cross-attention is not modelled"),
)


def read_config(config: Mapping[str, object], file: str, *, name: str | None = None) -> ModelSpec:
    """The sizes in a config.json. `file` is for messages; `name` is the model's, by default the file's.

    Raises `ProfileError`: unknown_model with the reason for what is not modelled, else the field and what is wrong.
    """
    given = Fields(config, file)
    family = _family(given)
    layers = given.needed(*fields.LAYERS)
    if layers > MAX_LAYERS:
        where = given.has(*fields.LAYERS)
        raise ProfileError(
            f"{file}: expected at most {MAX_LAYERS} layers, got {layers}", code="out_of_range", where=where
        )
    spec: dict[str, object] = {
        "name": name or file,
        "hidden": given.needed(*fields.HIDDEN),
        "num_layers": layers,
        "num_heads": given.needed(*fields.HEADS),
        "vocab": given.needed(*fields.VOCAB),
        "tied": given.flag("tie_word_embeddings"),
        "mtp_layers": given.whole(*fields.MTP_LAYERS) or 0,
        "qk_norm": family.qk_norm,
        "sinks": family.sinks,
    }
    given.whole(*fields.FFN)
    if given.flag("mlp_bias"):
        raise _refused(given, "mlp_bias", "a feed-forward bias without an output bias is not modelled")
    spec |= _latent(given, family) if family.latent else _grouped(given, family)
    spec |= _experts(given, family) if family.experts else {"ffn": given.needed(*fields.FFN)}
    return validate(ModelSpec, spec, file)


def _family(given: Fields) -> Family:
    kind = given.text("model_type")
    known = ", ".join(FAMILIES)
    if kind not in FAMILIES:
        for names, reason in _NOT_MODELLED:
            found = given.has(*names)
            if found:
                raise _refused(given, found, reason)
    if kind is None:
        if given.has("n_layers") and given.has("kv_lora_rank"):
            own = FAMILIES["deepseek_v2"]
            return FAMILIES["deepseek_v3"] if given.text("score_func") == "sigmoid" else own
        if given.has("quantization", "producer"):
            raise ProfileError(
                f"{given.file}: a quantisation config holds no sizes; give the config.json beside it",
                code="missing_field",
                where="hidden_size",
            )
        raise ProfileError(
            f"{given.file}: expected model_type, one of {known}", code="missing_field", where="model_type"
        )
    if kind not in FAMILIES:
        near = nearest_name(kind, FAMILIES)
        hint = f"; its nearest known is {near!r}, which need not be alike" if near else ""
        raise ProfileError(
            f"{given.file}: model_type {shown(kind)!r} is not modelled{hint}; known: {known}",
            code="unknown_model",
            where="model_type",
        )
    for names, reason in _NOT_MODELLED:
        found = given.has(*names)
        if found:
            raise _refused(given, found, reason)
    return FAMILIES[kind]


def _grouped(given: Fields, family: Family) -> dict[str, object]:
    heads = given.needed(*fields.HEADS)
    stated = "attention" if given.flag("attention_bias") else "none"
    if family.qk_norm == "full" and given.text("model_type") == "minimax_m2" and not given.flag("use_qk_norm"):
        raise _refused(given, "use_qk_norm", "this model without q/k norms is not modelled")
    as_heads = given.whole(*fields.KV_HEADS) is None and given.text("model_type") == "llama"
    return {
        "num_kv_heads": heads if as_heads else given.needed(*fields.KV_HEADS),
        "head_dim": _head_dim(given, family),
        "bias": stated if family.bias == "stated" else family.bias,
        "sliding": _sliding(given, family),
    }


def _head_dim(given: Fields, family: Family) -> int | None:
    """The stated head_dim, else what leaving it out means; None is hidden / heads."""
    if given.whole("head_dim") is not None:
        return given.needed("head_dim")
    if family.head_dim == "ratio":
        return None
    if family.head_dim is None or given.stated("head_dim"):
        raise given.missing("hidden / heads is not what every version of this model's code takes", "head_dim")
    return family.head_dim


def _sliding(given: Fields, family: Family) -> dict[str, object] | None:
    """Which layers slide: as `layer_types` lists them; without it all, or those from max_window_layers on."""
    layers = given.needed(*fields.LAYERS)
    window = given.whole("sliding_window")
    types = given.listed("layer_types")
    switched = given.flag("use_sliding_window", default=True)
    if family.sinks and window and not types:
        raise given.missing("which layers slide is not the same for all", "layer_types")
    if types:
        other = sorted({str(kind) for kind in types} - {"full_attention", "sliding_attention"})
        if other:
            reason = (
                "linear attention layers are" if "linear" in other[0] else f"layers of type {shown(other[0])!r} are"
            )
            raise _refused(given, "layer_types", f"{reason} not modelled")
        if len(types) != layers:
            raise ProfileError(
                f"{given.file}: expected {layers} layer_types, got {len(types)}",
                code="out_of_range",
                where="layer_types",
            )
        slide = [layer for layer, kind in enumerate(types) if kind == "sliding_attention"]
        if not slide:
            return None
        return {"window": given.needed("sliding_window"), "layers": slide}
    if not window or not switched:
        return None
    first = given.whole("max_window_layers") or 0
    return {"window": window, "layers": list(range(first, layers))} if first < layers else None


def _latent(given: Fields, family: Family) -> dict[str, object]:
    if given.flag("attention_bias"):
        raise _refused(given, "attention_bias", "biases in latent attention are not modelled")
    shared = [kind for kind in given.listed("indexer_types") if kind != "full"]
    if shared:
        raise _refused(given, "indexer_types", "layers that share another layer's indexer are not modelled")
    if not given.stated("q_lora_rank"):
        raise given.missing("state null or 0 for queries that are not compressed", "q_lora_rank")
    latent = {
        "q_lora": given.whole("q_lora_rank") or None,
        "kv_lora": given.needed("kv_lora_rank"),
        "nope": given.needed("qk_nope_head_dim"),
        "rope": given.needed("qk_rope_head_dim"),
        "v": given.needed("v_head_dim"),
    }
    indexer = None
    if family.indexer:
        indexer = {
            "num_heads": given.needed("index_n_heads"),
            "head_dim": given.needed("index_head_dim"),
            "top_k": given.needed("index_topk"),
        }
    elif given.has("index_topk", "index_n_heads"):
        raise _refused(given, "index_topk", "sparse attention is not modelled for this model_type")
    return {"mla": latent, "indexer": indexer}


def _experts(given: Fields, family: Family) -> dict[str, object]:
    width = given.needed(*(fields.FFN if family.experts_ffn else fields.EXPERT_FFN))
    dense = _dense_layers(given, family)
    first = len(dense)
    first_only = dense == list(range(first))
    if family.latent and not given.stated(*fields.SHARED_EXPERTS):
        raise given.missing("state null or 0 for none", *fields.SHARED_EXPERTS)
    if family.shared_gate and not given.stated("shared_expert_intermediate_size"):
        raise given.missing("state 0 for no shared expert", "shared_expert_intermediate_size")
    router_bias = _router_bias(given, family)
    shared = (given.whole(*fields.SHARED_EXPERTS) or 0) * width
    shared = given.whole("shared_expert_intermediate_size", "shared_intermediate_size") or shared
    experts = {
        "num_experts": given.needed(*fields.EXPERTS),
        "top_k": given.needed(*fields.TOP_K),
        "ffn": width,
        "shared_ffn": shared,
        "first_dense": first if first_only else 0,
        "dense_layers": None if first_only else dense,
        "bias": family.expert_bias,
        "router_bias": router_bias,
        "shared_gate": family.shared_gate and bool(shared),
    }
    return {"moe": experts, "ffn": given.needed(*fields.FFN) if dense else 0}


def _router_bias(given: Fields, family: Family) -> bool:
    """Whether experts are chosen with a correction that is learned."""
    if family.router_bias == "noaux_tc":
        method, score = given.text("topk_method"), given.text("score_func")
        if method is None and score is None:
            raise given.missing("they say whether the router has a correction bias", "topk_method", "score_func")
        return method == "noaux_tc" or score == "sigmoid"
    if family.router_bias == "use_routing_bias" and not given.stated("use_routing_bias"):
        raise given.missing("it says whether the router has a correction bias", "use_routing_bias")
    return family.router_bias == "yes" or (family.router_bias != "no" and given.flag("use_routing_bias"))


def _dense_layers(given: Fields, family: Family) -> list[int]:
    """The layers without experts, by whichever of five fields says so."""
    layers = given.needed(*fields.LAYERS)
    first = given.whole(*fields.FIRST_DENSE)
    dense = set(range(min(first or 0, layers)))
    types, frequency = given.per_layer("mlp_layer_types", ("dense", "sparse")), given.frequency
    if types:
        return [layer for layer, kind in enumerate(types[:layers]) if kind == "dense"]
    if family.latent and first is None and not isinstance(frequency, list):
        raise given.missing("state 0 if all layers have experts", *fields.FIRST_DENSE)
    step = given.step("decoder_sparse_step")
    dense |= {layer for layer in range(layers) if (layer + 1) % step}
    for layer in given.listed("mlp_only_layers"):
        if type(layer) is not int or layer < 0:
            raise ProfileError(
                f"{given.file}: expected mlp_only_layers to hold numbers of layers, got {shown(repr(layer))}",
                code="wrong_type",
                where="mlp_only_layers",
            )
        dense |= {layer} if layer < layers else set()
    if isinstance(frequency, list):
        dense |= {layer for layer, on in enumerate(frequency[:layers]) if not on}
    elif frequency > 1:
        dense |= {layer for layer in range(layers) if layer % frequency}
    return sorted(dense)


def _refused(given: Fields, where: str, reason: str) -> ProfileError:
    return ProfileError(f"{given.file}: {reason}", code="unknown_model", where=where)
