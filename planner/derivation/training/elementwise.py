"""Seconds of what is read and written between products: norms, sums, rotary embeddings, activations, the loss.

Bytes over the device's memory bandwidth, an upper bound of its speed; each tensor is read and written once. What a
fused kernel saves, and what a launch costs, is for a calibration to say.
"""

from __future__ import annotations

import numpy as np

from planner.derivation.account import Floats
from planner.derivation.training.cuts import Cuts
from planner.derivation.training.device import Device
from planner.derivation.training.parts import Part
from profiles.geometry.attention import Attention, GroupedAttention
from profiles.geometry.feed_forward import Dense, Experts, FeedForward
from profiles.priced import MODELLED

FP32_BYTES = 4
Passes = tuple[Floats, Floats]
"""Bytes forward and backward."""


def elementwise_part(device: Device, moved_bytes: Floats) -> Part:
    """Bytes at the speed of memory. Raises ProfileError (missing_field) where nobody states it."""
    seconds = np.asarray(moved_bytes / device.memory_bytes_per_s)
    return Part("elementwise", "elementwise", seconds, np.full(len(seconds), MODELLED, dtype=np.int8))


def norm_bytes(hidden: int, cuts: Cuts, element_bytes: float) -> Passes:
    """One norm: input and output forward; input, gradient in and out backward."""
    values = cuts.own_tokens * hidden * element_bytes
    return 2 * values, 3 * values


def layer_bytes(hidden: int, attention: Attention, network: FeedForward, cuts: Cuts, element_bytes: float) -> Passes:
    """Of a layer: two norms, two sums with the residual, rotary embeddings, the activation, copies to experts."""
    residual = 3 * cuts.own_tokens * hidden * element_bytes
    parts = [norm_bytes(hidden, cuts, element_bytes)] * 2 + [(residual, residual)] * 2
    parts.append(_rotary(attention, cuts, element_bytes))
    parts.append(activation_bytes(network, cuts, element_bytes))
    if isinstance(network, Experts):
        parts.append(_copies(hidden, network, cuts, element_bytes))
    return _sum(parts)


def activation_bytes(network: FeedForward, cuts: Cuts, element_bytes: float) -> Passes:
    """Of a dense network or shared experts; rows of routed experts hold theirs."""
    ffn = network.ffn if isinstance(network, Dense) else network.shared_ffn
    values = cuts.tokens * ffn * element_bytes / cuts.tp
    return (3 * values, 5 * values) if network.gated else (2 * values, 3 * values)


def routed_activation_bytes(experts: Experts, cuts: Cuts, load_factor: float, element_bytes: float) -> Floats:
    """Forward, of a rank's copies of tokens: gate and up read, their product written."""
    values = experts.top_k * load_factor * cuts.own_tokens * experts.ffn * element_bytes
    return (3 if experts.gated else 2) * values


def embedding_bytes(hidden: int, cuts: Cuts, element_bytes: float) -> Passes:
    """Rows read and written; backward the gradient is added to what is kept in 32 bits."""
    values = cuts.tokens * hidden
    return 2 * element_bytes * values, (element_bytes + 2 * FP32_BYTES) * values


def head_bytes(hidden: int, vocab: int, cuts: Cuts, element_bytes: float) -> Passes:
    """The final norm, and the loss: logits to 32 bits, their maximum, their sum; their gradient, and back to 16."""
    logits = cuts.tokens * vocab / cuts.tp
    norm = norm_bytes(hidden, cuts, element_bytes)
    return _sum([norm, ((element_bytes + 3 * FP32_BYTES) * logits, (element_bytes + 2 * FP32_BYTES) * logits)])


def _rotary(attention: Attention, cuts: Cuts, element_bytes: float) -> Passes:
    """Queries and keys of a rank, read and written."""
    if isinstance(attention, GroupedAttention):
        width = (attention.heads + attention.kv_heads) * attention.head_dim
    else:
        width = 2 * attention.heads * (attention.nope + attention.rope)
    values = 2 * cuts.tokens * width * element_bytes / cuts.tp
    return values, values


def _copies(hidden: int, experts: Experts, cuts: Cuts, element_bytes: float) -> Passes:
    """Tokens to the order of their experts and back, summed."""
    values = (4 * experts.top_k + 1) * cuts.own_tokens * hidden * element_bytes
    return values, values


def _sum(parts: list[Passes]) -> Passes:
    forward, backward = zip(*parts, strict=True)
    return np.asarray(sum(forward)), np.asarray(sum(backward))
