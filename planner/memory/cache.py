"""Bytes of the key-value cache on one device (3.4, generation)."""

from __future__ import annotations

import numpy as np

from planner.memory.amounts import Amount
from profiles.geometry.attention import LatentAttention
from profiles.geometry.model import LayerKind, ModelGeometry


def layer_cache_bytes(kind: LayerKind, tokens: Amount, element_bytes: float, tensor_ranks: Amount = 1) -> Amount:
    """Bytes that sequences of ``tokens`` keep in one layer: 2·k·d a token over min(t, k), a latent undivided.

    A sliding layer keeps its window and no more of each sequence.
    """
    attention = kind.attention
    held = tokens if attention.window is None else np.minimum(tokens, attention.window)
    whole = attention.kv_elements * element_bytes * held
    return whole if isinstance(attention, LatentAttention) else whole / np.minimum(tensor_ranks, attention.kv_heads)


def cache_bytes(
    model: ModelGeometry, tokens: Amount, element_bytes: float, tensor_ranks: Amount = 1, num_stages: Amount = 1
) -> Amount:
    """Bytes that one sequence of ``tokens`` keeps on a device, all layers over ``num_stages``."""
    layers = sum(count * layer_cache_bytes(kind, tokens, element_bytes, tensor_ranks) for kind, count in model.kinds())
    return layers / num_stages
