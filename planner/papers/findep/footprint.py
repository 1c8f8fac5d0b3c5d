"""The amounts behind eq. 10 (``Memory`` of a problem), by cause, derived from a model: weights, cache, buffers."""

from __future__ import annotations

from planner.derivation.moe.weights import parts_beside_experts, weight_bytes
from planner.derivation.moe.workspace import workspace_bytes_per_token
from planner.memory import inference as memory
from planner.memory.cache import cache_bytes
from planner.papers.findep.problem import Memory
from planner.papers.findep.setting import Setting
from profiles.families import DTYPE_BYTES

Bytes = dict[str, float]


def memory_of(setting: Setting, capacity_bytes: float, reserve_bytes: float) -> Memory:
    """What fills a GPU of each pool; bytes of a resident sample are those of the first split."""
    given, model = setting.given, setting.model
    weights = {f"{part}_weights": weight_bytes(model, part, given) for part in parts_beside_experts(model)}
    inner = memory.expert_buffer_bytes_per_copy(
        model.hidden,
        model.experts,
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
        expert_bytes_per_expert={"expert_weights": _whole(weight_bytes(model, "experts", given) / model.experts.count)},
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
        "kv_cache": _whole(cache_bytes(model.geometry, given.context, DTYPE_BYTES[given.cache_dtype])),
        "residual_stream": _whole(tokens * memory.residual_stream_bytes_per_token(model.hidden, element)),
        "exchange_buffers": _whole(tokens * exchange),
    }


def _workspace(setting: Setting) -> float:
    """A2 a token."""
    given = setting.given
    return workspace_bytes_per_token(setting.model, given.activation_dtype, absorbed=given.phase == "decode")


def _whole(amount: float) -> float:
    return float(round(amount))
