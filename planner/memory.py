"""Bytes on one device by cause: the project's one memory model (memory page, 3.3 to 3.5; inference at the end).

Parameters are counts, activations are bytes. Every function takes plain integers or NumPy arrays of them (all the
arguments of one call broadcast), so that a whole table of layouts or lengths is one call. Letters of the page:
t = ``tensor_ranks``; q = ``norm_ranks``, which is t with sequence parallelism and 1 without; h = ``hidden``; a =
``num_heads``; k = ``num_kv_heads``; d = ``head_dim``; f = ``ffn``. t must divide heads, ffn and vocabulary.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

Amount = Any
"""An integer or a NumPy array of integers; results have the broadcast shape."""

ROW_STATISTICS_BYTES = 4
"""fp32: one log-sum-exp a query row and head is what flash attention keeps for its backward."""

Schedule = Literal["gpipe", "1f1b", "interleaved"]


# --- 3.3 parameters on one device ---------------------------------------------------------------------------------


def attention_parameters(
    hidden: Amount,
    num_heads: Amount,
    num_kv_heads: Amount,
    head_dim: Amount,
    *,
    bias: bool = False,
    qk_norm: bool = False,
    tensor_ranks: Amount = 1,
) -> Amount:
    """Query, key, value and output projections of one layer. Output bias and q/k norms are copied on each t rank."""
    split = 2 * hidden * num_heads * head_dim + 2 * hidden * num_kv_heads * head_dim
    if bias:
        split = split + (num_heads + 2 * num_kv_heads) * head_dim
    return split // tensor_ranks + (hidden if bias else 0) + (2 * head_dim if qk_norm else 0)


def ffn_parameters(hidden: Amount, ffn: Amount, *, gated: bool, bias: bool = False, tensor_ranks: Amount = 1) -> Amount:
    """The dense FFN of one layer: 3hf gated (up, gate, down), 2hf not. The output bias is copied on each t rank."""
    split = (3 if gated else 2) * hidden * ffn
    if bias:
        split = split + (2 if gated else 1) * ffn
    return split // tensor_ranks + (hidden if bias else 0)


def norm_parameters(hidden: Amount, kind: Literal["rms", "layer"]) -> Amount:
    """One norm: a scale, and a shift in a layer norm. Copied on each t rank; a layer has two, a model one more."""
    return hidden if kind == "rms" else 2 * hidden


def embedding_parameters(vocabulary: Amount, hidden: Amount, *, tensor_ranks: Amount = 1) -> Amount:
    """One vocabulary matrix: the embedding, and again the head unless they are tied. Give the padded vocabulary."""
    return vocabulary * hidden // tensor_ranks


def dit_block_parameters(hidden: Amount) -> Amount:
    """One DiT block with its own modulation: attention 4h²+4h, FFN (f = 4h) 8h²+5h, modulation 6h²+6h."""
    return (4 * hidden**2 + 4 * hidden) + (8 * hidden**2 + 5 * hidden) + (6 * hidden**2 + 6 * hidden)


def dit_end_parameters(
    hidden: Amount,
    *,
    patch_values: Amount,
    output_values: Amount,
    positions: Amount = 0,
    labels: Amount = 0,
    time_features: Amount = 256,
) -> Amount:
    """What stands around the blocks of a DiT: patch, position, time and label embeddings, the modulated output.

    ``patch_values`` and ``output_values`` are the numbers in one patch going in and coming out.
    """
    patch = patch_values * hidden + hidden
    time = time_features * hidden + hidden + hidden**2 + hidden
    output = 2 * hidden**2 + 2 * hidden + output_values * hidden + output_values
    return patch + positions * hidden + time + labels * hidden + output


def cross_attention_dit_block_parameters(hidden: Amount, ffn: Amount) -> Amount:
    """One Wan-like block: self and cross attention with biases and full-width q/k norms, FFN, a modulation table."""
    attention = 4 * hidden**2 + 4 * hidden + 2 * hidden
    feed_forward = 2 * hidden * ffn + ffn + hidden
    return 2 * attention + feed_forward + 6 * hidden + norm_parameters(hidden, "layer")


def cross_attention_dit_end_parameters(
    hidden: Amount, *, patch_values: Amount = 64, text_width: Amount = 4096, time_features: Amount = 256
) -> Amount:
    """Around Wan-like blocks: patch, text and time embeddings, the shared six-way modulation, the modulated head."""
    text = text_width * hidden + hidden + hidden**2 + hidden
    time = time_features * hidden + hidden + hidden**2 + hidden + 6 * hidden**2 + 6 * hidden
    head = patch_values * hidden + patch_values + 2 * hidden
    return patch_values * hidden + hidden + text + time + head


def double_stream_block_parameters(hidden: Amount, ffn: Amount, head_dim: Amount) -> Amount:
    """One double-stream block (FLUX, HunyuanVideo): modulation, attention, q/k norms, FFN, for image and for text."""
    attention = 4 * hidden**2 + 4 * hidden + 2 * head_dim
    return 2 * (6 * hidden**2 + 6 * hidden + attention + 2 * hidden * ffn + ffn + hidden)


def single_stream_block_parameters(hidden: Amount, ffn: Amount, head_dim: Amount) -> Amount:
    """One single-stream block: modulation, q, k, v and FFN in one product, output and FFN in another, q/k norms."""
    inner = hidden * (3 * hidden + ffn) + 3 * hidden + ffn
    outer = (hidden + ffn) * hidden + hidden
    return 3 * hidden**2 + 3 * hidden + inner + outer + 2 * head_dim


def joint_dit_end_parameters(
    hidden: Amount,
    *,
    patch_values: Amount = 64,
    text_width: Amount = 4096,
    pooled_width: Amount = 768,
    time_features: Amount = 256,
) -> Amount:
    """Around joint blocks (FLUX): patch, text, pooled text, time and guidance embeddings, the modulated output."""
    embedded = hidden**2 + 2 * hidden
    conditions = 2 * (time_features * hidden + embedded) + pooled_width * hidden + embedded
    output = 2 * hidden**2 + 2 * hidden + patch_values * hidden + patch_values
    return patch_values * hidden + hidden + text_width * hidden + hidden + conditions + output


# --- 3.4 activations stored for the backward, bytes a token and layer ---------------------------------------------


def attention_activation_bytes_per_token(
    hidden: Amount,
    num_heads: Amount,
    num_kv_heads: Amount,
    head_dim: Amount,
    *,
    tensor_ranks: Amount = 1,
    norm_ranks: Amount = 1,
    element_bytes: int = 2,
) -> Amount:
    """Flash attention, no dropout: norm in and out; query and output; key and value; the row statistics.

    4h/q + (4ad + 4kd + 4a)/t at two bytes an element.
    """
    e = 2 * element_bytes
    inside = e * num_heads * head_dim + e * num_kv_heads * head_dim + ROW_STATISTICS_BYTES * num_heads
    return e * hidden / norm_ranks + inside / tensor_ranks


def ffn_activation_bytes_per_token(
    hidden: Amount,
    ffn: Amount,
    *,
    gated: bool,
    tensor_ranks: Amount = 1,
    norm_ranks: Amount = 1,
    element_bytes: int = 2,
) -> Amount:
    """The dense FFN: norm in and out, then 3f values gated or 2f not. 4h/q + 6f/t or 4f/t at two bytes."""
    return 2 * element_bytes * hidden / norm_ranks + (3 if gated else 2) * element_bytes * ffn / tensor_ranks


def dit_activation_bytes_per_token(
    hidden: Amount,
    num_heads: Amount,
    head_dim: Amount,
    ffn: Amount,
    *,
    tensor_ranks: Amount = 1,
    norm_ranks: Amount = 1,
    element_bytes: int = 2,
) -> Amount:
    """A DiT block: attention, FFN that is not gated, and 8h/q for the modulated copies and the gated branches."""
    attention = attention_activation_bytes_per_token(
        hidden,
        num_heads,
        num_heads,
        head_dim,
        tensor_ranks=tensor_ranks,
        norm_ranks=norm_ranks,
        element_bytes=element_bytes,
    )
    feed_forward = ffn_activation_bytes_per_token(
        hidden, ffn, gated=False, tensor_ranks=tensor_ranks, norm_ranks=norm_ranks, element_bytes=element_bytes
    )
    return attention + feed_forward + 4 * element_bytes * hidden / norm_ranks


# --- 3.5 in flight ------------------------------------------------------------------------------------------------


def in_flight_chunks(
    schedule: Schedule,
    stage_rank: Amount,
    *,
    num_stages: Amount,
    num_micro_batches: Amount,
    chunks_per_rank: Amount = 1,
) -> Amount:
    """Chunk-micro-batches resident at the peak of pipeline rank r = 0 … p−1, each of L/(p·v) layers.

    GPipe m (v of them a micro-batch); 1F1B min(m, p−r); interleaved min(m·v, 2(p−r−1) + (v−1)p + 1), which with one
    chunk a rank is 1F1B's own order and count.
    """
    if schedule == "gpipe":
        return num_micro_batches * chunks_per_rank + 0 * stage_rank
    one_chunk = np.minimum(num_micro_batches, num_stages - stage_rank)
    if schedule == "1f1b":
        return one_chunk
    warm_up = 2 * (num_stages - stage_rank - 1) + (chunks_per_rank - 1) * num_stages + 1
    many = np.minimum(num_micro_batches * chunks_per_rank, warm_up)
    return np.where(np.asarray(chunks_per_rank) == 1, one_chunk, many)


# --- 3.1 model states ---------------------------------------------------------------------------------------------


def sharded_state_bytes(
    parameters: Amount, bytes_per_parameter: float, *, shard_ranks: Amount, unit_parameters: Amount, element_bytes: int
) -> Amount:
    """Weights, gradients and optimizer states of a fully sharded (ZeRO-3, FSDP) model on one device.

    The states over ``shard_ranks``, and what is whole for a while: two gathered units (one in use, one prefetched)
    and one unit of gradients waiting for its reduction, at ``element_bytes``. Nothing is gathered on one rank.
    """
    gathered = 3 * unit_parameters * element_bytes
    return parameters * bytes_per_parameter / shard_ranks + np.where(np.asarray(shard_ranks) > 1, gathered, 0)


# --- inference: what a forward holds beside weights and cache, bytes a token --------------------------------------


def grouped_workspace_bytes_per_token(
    num_heads: Amount, num_kv_heads: Amount, head_dim: Amount, *, element_bytes: float = 2
) -> Amount:
    """Query, key and value, and the output of attention before its projection."""
    return (2 * num_heads + 2 * num_kv_heads) * head_dim * element_bytes


def latent_workspace_bytes_per_token(
    num_heads: Amount,
    nope: Amount,
    rope: Amount,
    value: Amount,
    kv_lora: Amount,
    *,
    absorbed: bool,
    element_bytes: float = 2,
) -> Amount:
    """The same of latent attention: keys and values expanded, or (absorbed) queries and outputs in the latent."""
    query = nope + rope
    inner = kv_lora + rope + kv_lora if absorbed else query + value
    return num_heads * (query + inner + value) * element_bytes


def ffn_workspace_bytes_per_token(ffn: Amount, *, gated: bool, element_bytes: float = 2) -> Amount:
    """What the products into a feed-forward part leave: gate and up, or up alone."""
    return (2 if gated else 1) * ffn * element_bytes


def exchange_buffer_bytes_per_token(
    hidden: Amount, destinations: Amount, *, sent_element_bytes: float, received_element_bytes: float
) -> Amount:
    """Buffers of a token's copies to ``destinations`` devices, and of what comes back from them."""
    return hidden * destinations * (sent_element_bytes + received_element_bytes)


def expert_buffer_bytes_per_copy(
    hidden: Amount,
    ffn: Amount,
    *,
    gated: bool,
    received_element_bytes: float,
    sent_element_bytes: float,
    element_bytes: float = 2,
) -> Amount:
    """A token copy on its expert's device: as it came, inside the expert, and as it goes back."""
    inside = ffn_workspace_bytes_per_token(ffn, gated=gated, element_bytes=element_bytes)
    return hidden * (received_element_bytes + sent_element_bytes) + inside
