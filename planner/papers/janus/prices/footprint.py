"""Bytes on an instance of each side: weights, cache and buffers (page, "Model" 6), and the slots that memory holds."""

from __future__ import annotations

from planner.derivation.moe.weights import parts_beside_experts, weight_bytes
from planner.derivation.moe.workspace import workspace_bytes_per_token
from planner.errors import BadInputError
from planner.memory import inference as memory
from planner.memory.cache import cache_bytes
from planner.papers.janus.costs import Memory
from planner.papers.janus.prices.setting import Setting
from profiles.families import DTYPE_BYTES

CAPACITY = "derive.memory.capacity_bytes"


def memory_of(setting: Setting) -> Memory | None:
    """What fills an instance of either side; None where memory is unlimited."""
    given, model = setting.given, setting.model
    if given.memory is None or setting.attention_bytes is None:
        return None
    weights = {f"{part}_weights": weight_bytes(model, part, given) for part in parts_beside_experts(model)}
    return Memory(
        capacity_bytes=setting.attention_bytes,
        attention_fixed_bytes={**weights, "reserve": given.memory.reserve_bytes},
        kv_bytes_per_token=kv_bytes_per_token(setting),
        activation_bytes_per_request=activation_bytes(setting),
        expert_bytes_per_slot=expert_bytes(setting),
        expert_fixed_bytes={"reserve": given.memory.reserve_bytes},
        expert_capacity_bytes=None if setting.expert_bytes == setting.attention_bytes else setting.expert_bytes,
    )


def expert_bytes(setting: Setting) -> float:
    """Bytes of one expert in all its layers."""
    return weight_bytes(setting.model, "experts", setting.given) / setting.model.experts.count


def kv_bytes_per_token(setting: Setting) -> float:
    """Of a cached token over all layers, the mean over the context: a sliding layer keeps its window and no more."""
    held = cache_bytes(setting.model.geometry, setting.context, DTYPE_BYTES[setting.given.cache_dtype])
    return float(f"{round(held) / setting.context:.9g}")


def activation_bytes(setting: Setting) -> float:
    """Of a request while its token is made: the residual stream twice, what is sent and comes back, the workspace."""
    given, model = setting.given, setting.model
    stream = memory.residual_stream_bytes_per_token(model.hidden, DTYPE_BYTES[given.activation_dtype])
    exchange = memory.exchange_buffer_bytes_per_token(
        model.hidden, 1, sent_element_bytes=given.sent_bytes, received_element_bytes=given.sent_bytes
    )
    return float(round(stream + exchange + workspace_bytes_per_token(model, given.activation_dtype, absorbed=True)))


def slots_of(setting: Setting) -> int:
    """C: stated, or the experts that an instance holds beside its reserve. Raises BadInputError where it holds none."""
    given, count, each = setting.given, setting.model.experts.count, expert_bytes(setting)
    stated = given.slots_per_instance
    if given.memory is None or setting.expert_bytes is None:
        if stated is None:
            raise TypeError("a validated problem states its slots or its memory")
        return stated
    held = int((setting.expert_bytes - given.memory.reserve_bytes) // each)
    if stated is not None and 1 <= held < stated:
        raise BadInputError(
            f"expected at most the {held} experts of {each:,.0f} bytes that an instance holds, got {stated}",
            code="out_of_range",
            where="derive.slots_per_instance",
        )
    if held < 1:
        raise BadInputError(
            f"one expert of {setting.model.name} takes {each:,.0f} bytes in all layers, beside a reserve of "
            f"{given.memory.reserve_bytes:,.0f}: expected at least both, got {setting.expert_bytes:,.0f}",
            code="out_of_range",
            where=CAPACITY,
        )
    return min(held, count) if stated is None else stated
