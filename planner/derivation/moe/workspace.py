"""Bytes that a token leaves on an attention device while its layers run."""

from __future__ import annotations

from planner.derivation.moe.model import MoeModel
from planner.memory.inference import layer_workspace_bytes_per_token
from profiles.families import DTYPE_BYTES


def workspace_bytes_per_token(model: MoeModel, activation_dtype: str, *, absorbed: bool) -> float:
    """The largest of what the parts of any layer leave, one after the other; ``absorbed``: as latents are decoded."""
    element = DTYPE_BYTES[activation_dtype]
    return max(
        layer_workspace_bytes_per_token(kind, absorbed=absorbed, element_bytes=element) for kind, _ in model.every_kind
    )
