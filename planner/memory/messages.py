"""Bytes that the parallel groups of a layer move for one micro-batch, forward; the backward moves the same (3.2)."""

from __future__ import annotations

import numpy as np

from planner.memory.amounts import Amount


def tensor_message_bytes(hidden: Amount, tokens: Amount, element_bytes: float = 2) -> Amount:
    """The array of each all-reduce of a tensor group, or of an all-gather and a reduce-scatter in its place: T·h.

    A layer has two of them.
    """
    return tokens * hidden * element_bytes


def expert_message_bytes(hidden: Amount, top_k: Amount, own_tokens: Amount, element_bytes: float = 2) -> Amount:
    """What dispatch, and again combine, takes to the experts of all ranks: K copies of a rank's T/q tokens.

    Under balanced routing (e−1)/e of it leaves the rank.
    """
    return own_tokens * top_k * hidden * element_bytes


def context_hop_bytes(
    num_kv_heads: Amount, head_dim: Amount, tokens: Amount, tensor_ranks: Amount = 1, element_bytes: float = 2
) -> Amount:
    """Keys and values of a rank's ``tokens``, 2·k·d over min(t, k), which it passes on in each of c−1 hops.

    The backward passes twice as much: their gradients too.
    """
    return 2 * num_kv_heads * head_dim * tokens * element_bytes / np.minimum(tensor_ranks, num_kv_heads)


def boundary_bytes(hidden: Amount, tokens: Amount, norm_ranks: Amount = 1, element_bytes: float = 2) -> Amount:
    """What crosses one boundary of pipeline stages in one direction: T·h/q elements."""
    return tokens * hidden * element_bytes / norm_ranks
