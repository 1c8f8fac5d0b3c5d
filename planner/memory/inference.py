"""Bytes of inference: weights in their dtypes, and what a forward holds beside weights and cache, bytes a token."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from planner.memory.amounts import Amount
from profiles.geometry.attention import Attention, LatentAttention
from profiles.geometry.feed_forward import Dense, Experts, FeedForward
from profiles.geometry.model import LayerKind
from profiles.geometry.weights import Weight


def weight_bytes(weights: Iterable[tuple[Weight, int]], element_bytes: Callable[[Weight], float]) -> float:
    """Bytes of weights, each so many times, at ``element_bytes`` a parameter of each; a whole number."""
    return float(round(sum(weight.parameters * count * element_bytes(weight) for weight, count in weights)))


def expert_matrix_bytes(hidden: int, experts: Experts, element_bytes: float) -> float:
    """Bytes of the matrices of one expert of one layer; biases are not counted."""
    found = (w.parameters for w in experts.weights(hidden) if w.part == "experts" and not w.vector)
    return sum(found) // experts.count * element_bytes


def residual_stream_bytes_per_token(hidden: Amount, element_bytes: float = 2) -> Amount:
    """The residual stream, and its copy that goes through a layer."""
    return 2 * hidden * element_bytes


def layer_workspace_bytes_per_token(kind: LayerKind, *, absorbed: bool, element_bytes: float = 2) -> float:
    """The larger of what its attention and its feed-forward part leave, one after the other.

    ``absorbed``: how latents are met, as decoding does. Of experts only the shared ones run beside attention.
    """
    return float(
        max(
            _attention_bytes(kind.attention, absorbed, element_bytes),
            _products_in(kind.feed_forward) * _dense_width(kind.feed_forward) * element_bytes,
        )
    )


def exchange_buffer_bytes_per_token(
    hidden: Amount, destinations: Amount, *, sent_element_bytes: float, received_element_bytes: float
) -> Amount:
    """Buffers of a token's copies to ``destinations`` devices, and of what comes back from them."""
    return hidden * destinations * (sent_element_bytes + received_element_bytes)


def expert_buffer_bytes_per_copy(
    hidden: int,
    experts: Experts,
    *,
    received_element_bytes: float,
    sent_element_bytes: float,
    element_bytes: float = 2,
) -> float:
    """A token copy on its expert's device: as it came, inside the expert, and as it goes back."""
    inside = _products_in(experts) * experts.ffn * element_bytes
    return hidden * (received_element_bytes + sent_element_bytes) + inside


def _attention_bytes(attention: Attention, absorbed: bool, element_bytes: float) -> float:
    """Query, key and value, and the output before its projection; of a latent expanded, or in the latent itself."""
    if isinstance(attention, LatentAttention):
        query = attention.nope + attention.rope
        latent = attention.kv_lora + attention.rope + attention.kv_lora
        inner = latent if absorbed else query + attention.v
        return attention.heads * (query + inner + attention.v) * element_bytes
    return (2 * attention.heads + 2 * attention.kv_heads) * attention.head_dim * element_bytes


def _products_in(network: FeedForward) -> int:
    """Products into it, whose results are held: gate and up, or up alone."""
    return 2 if network.gated else 1


def _dense_width(network: FeedForward) -> int:
    return network.ffn if isinstance(network, Dense) else network.shared_ffn
