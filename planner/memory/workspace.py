"""Bytes that live only while one layer's backward runs, beside what the layer kept (3.4, 3.6) [derived].

Gradients of the residual stream and of the widest products' results, and with sequence parallelism the array that the
tensor group gathers. A layer kept nothing of these; the largest layer of a rank counts once.
"""

from __future__ import annotations

import numpy as np

from planner.memory.activations import FLASH, LOGIT_BYTES, Cut, Kernels, logits_on_rank
from planner.memory.amounts import Amount
from planner.memory.models import Layer
from profiles.geometry.attention import Attention, LatentAttention
from profiles.geometry.feed_forward import Dense, FeedForward


def layer_workspace_bytes(kind: Layer, cut: Cut, kernels: Kernels) -> Amount:
    """Bytes of one micro-batch: the larger of the attention's and the feed-forward part's gradients, and the stream's.

    Without flash attention the gradient of the scores is one of them.
    """
    h, q = kind.hidden, cut.norm_ranks
    stream = h / q + np.where(np.asarray(q) > 1, h, 0)
    widest = np.maximum(_attention(kind.attention, cut, kernels), _feed_forward(kind.feed_forward, h, cut))
    return cut.tokens * kernels.element_bytes * (stream + widest)


def head_workspace_bytes(vocab: Amount, cut: Cut, kernels: Kernels = FLASH) -> Amount:
    """Bytes of the logits' gradient, in fp32 as the loss makes it and as the head's product reads it.

    A loss that is not parallel makes a second gradient in fp32, between the loss and its softmax, and holds the
    gathered logits as the head made them: the authors' code of arXiv 2311.05610 does.
    """
    fp32 = 1 if kernels.parallel_loss else 2
    return cut.tokens * (fp32 * LOGIT_BYTES + kernels.element_bytes) * logits_on_rank(vocab, cut, kernels)


def _attention(attention: Attention, cut: Cut, kernels: Kernels) -> Amount:
    a, t = attention.heads, cut.tensor_ranks
    scores = 0 if kernels.flash else a * cut.sequence_length / t
    if isinstance(attention, LatentAttention):
        return scores + 2 * a * (attention.nope + attention.rope + attention.v) / t
    d, k = attention.head_dim, attention.kv_heads
    return scores + 2 * a * d / t + 2 * k * d / np.minimum(t, k)


def _feed_forward(network: FeedForward, hidden: int, cut: Cut) -> Amount:
    results = 3 if network.gated else 2
    if isinstance(network, Dense):
        return results * network.ffn / cut.tensor_ranks
    copies = network.top_k * cut.load_factor / cut.norm_ranks
    return copies * (cut.expert_tensor_ranks * hidden + results * network.ffn)
