"""The amounts behind eq. 10 (``Memory`` of a problem), by cause, derived from a model: weights, cache, buffers."""

from __future__ import annotations

from collections.abc import Iterable

from planner import memory
from planner.papers.findep.moe_model import MoeModel
from planner.papers.findep.problem import Memory
from planner.papers.findep.setting import Setting
from profiles.families import DTYPE_BYTES
from profiles.geometry.attention import LatentAttention
from profiles.geometry.feed_forward import Dense
from profiles.geometry.model import LayerKind
from profiles.geometry.weights import Weight

Bytes = dict[str, float]

_IN_ACTIVATION_DTYPE = ("embeddings", "head", "router", "norms")


def memory_of(setting: Setting, capacity_bytes: float, reserve_bytes: float) -> Memory:
    """What fills a GPU of each pool; bytes of a resident sample are those of the first split."""
    given, model = setting.given, setting.model
    parts = [part for part in model.geometry.parameters_by_part if part != "experts"]
    weights = {f"{part}_weights": weight_bytes(setting, part) for part in parts}
    inner = memory.expert_buffer_bytes_per_copy(
        model.hidden,
        model.experts.ffn,
        gated=True,
        received_element_bytes=given.dispatch_bytes,
        sent_element_bytes=given.combine_bytes,
        element_bytes=DTYPE_BYTES[given.activation_dtype],
    )
    return Memory(
        attention_capacity_bytes=capacity_bytes,
        attention_fixed_bytes={**weights, "reserve": reserve_bytes},
        attention_bytes_per_sample=None
        if len(setting.splits) > 1
        else bytes_per_sample(setting, setting.splits[0].expert_gpus),
        attention_workspace_bytes_per_sample={"workspace": _whole(given.tokens_per_sample * _workspace(setting))},
        expert_capacity_bytes=capacity_bytes,
        expert_fixed_bytes={"reserve": reserve_bytes},
        expert_bytes_per_expert={"expert_weights": _whole(weight_bytes(setting, "experts") / model.experts.count)},
        expert_buffer_bytes_per_token={"expert_buffers": _whole(inner)},
    )


def bytes_per_sample(setting: Setting, expert_gpus: int) -> Bytes:
    """A1: the cache of all layers, the residual stream twice, and copies to as many GPUs as a token goes to."""
    given, model = setting.given, setting.model
    tokens, element = given.tokens_per_sample, DTYPE_BYTES[given.activation_dtype]
    exchange = memory.exchange_buffer_bytes_per_token(
        model.hidden,
        min(model.experts.top_k, expert_gpus),
        sent_element_bytes=given.dispatch_bytes,
        received_element_bytes=given.combine_bytes,
    )
    return {
        "kv_cache": float(model.geometry.kv_bytes(given.context, given.cache_dtype)),
        "residual_stream": _whole(2 * tokens * model.hidden * element),
        "exchange_buffers": _whole(tokens * exchange),
    }


def weight_bytes(setting: Setting, part: str) -> float:
    """Bytes of one part of the model, all layers: what is multiplied in its dtype, biases and the rest in 16 bits."""
    given, model = setting.given, setting.model
    dtype = given.experts_dtype if part == "experts" else given.dtype
    if part in _IN_ACTIVATION_DTYPE:
        dtype = given.activation_dtype
    return _whole(
        sum(
            weight.parameters * count * DTYPE_BYTES[given.activation_dtype if weight.vector else dtype]
            for weight, count in _weights(model)
            if weight.part == part
        )
    )


def _weights(model: MoeModel) -> Iterable[tuple[Weight, int]]:
    for kind, count in model.every_kind:
        yield from ((weight, count) for weight in kind.weights)
    yield from ((weight, 1) for weight in model.geometry.ends)


def _workspace(setting: Setting) -> float:
    """A2 a token: the largest of what the parts of any layer leave while they run, one after the other."""
    return max(_kind_workspace(setting, kind) for kind, _ in setting.model.every_kind)


def _kind_workspace(setting: Setting, kind: LayerKind) -> float:
    element = DTYPE_BYTES[setting.given.activation_dtype]
    attention, network = kind.attention, kind.feed_forward
    if isinstance(attention, LatentAttention):
        inside = memory.latent_workspace_bytes_per_token(
            attention.heads,
            attention.nope,
            attention.rope,
            attention.v,
            attention.kv_lora,
            absorbed=setting.given.phase == "decode",
            element_bytes=element,
        )
    else:
        inside = memory.grouped_workspace_bytes_per_token(
            attention.heads, attention.kv_heads, attention.head_dim, element_bytes=element
        )
    ffn = network.ffn if isinstance(network, Dense) else network.shared_ffn
    return float(max(inside, memory.ffn_workspace_bytes_per_token(ffn, gated=network.gated, element_bytes=element)))


def _whole(amount: float) -> float:
    return float(round(amount))
