"""Bytes that a token leaves on an attention device while its layers run."""

from __future__ import annotations

from planner import memory
from planner.derivation.moe.model import MoeModel
from profiles.families import DTYPE_BYTES
from profiles.geometry.attention import LatentAttention
from profiles.geometry.feed_forward import Dense
from profiles.geometry.model import LayerKind


def workspace_bytes_per_token(model: MoeModel, activation_dtype: str, *, absorbed: bool) -> float:
    """The largest of what the parts of any layer leave, one after the other; ``absorbed``: as latents are decoded."""
    return max(_of_kind(kind, DTYPE_BYTES[activation_dtype], absorbed) for kind, _ in model.every_kind)


def _of_kind(kind: LayerKind, element: float, absorbed: bool) -> float:
    attention, network = kind.attention, kind.feed_forward
    if isinstance(attention, LatentAttention):
        inside = memory.latent_workspace_bytes_per_token(
            attention.heads,
            attention.nope,
            attention.rope,
            attention.v,
            attention.kv_lora,
            absorbed=absorbed,
            element_bytes=element,
        )
    else:
        inside = memory.grouped_workspace_bytes_per_token(
            attention.heads, attention.kv_heads, attention.head_dim, element_bytes=element
        )
    ffn = network.ffn if isinstance(network, Dense) else network.shared_ffn
    return float(max(inside, memory.ffn_workspace_bytes_per_token(ffn, gated=network.gated, element_bytes=element)))
