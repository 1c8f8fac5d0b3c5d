"""Bytes that a layer keeps of one micro-batch for its backward, and those of the model's two ends (3.4).

Sources: without flash attention and with dropout the published sbh(10 + 24/t + 5as/(ht)) of arXiv 2205.05198; the rest
is one entry per tensor that the backward reads. Bytes are of one device: `Kernels.element_bytes` a number, one of a
dropout mask, four of a statistic, a router's logit and a logit of the head.

Key and value heads are copied where there are fewer than tensor ranks, so they are divided by min(t, k).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from planner.memory.amounts import Amount
from profiles.geometry.attention import Attention, GroupedAttention, LatentAttention
from profiles.geometry.diffusion_blocks import DiffusionBlock
from profiles.geometry.feed_forward import Dense, FeedForward
from profiles.geometry.model import LayerKind
from profiles.geometry.weights import Part

STATISTIC_BYTES = 4
"""fp32: flash attention keeps one log-sum-exp a query row and head."""
ROUTER_BYTES = 4
"""fp32: the router's logits."""
LOGIT_BYTES = 4
"""fp32: the head's logits, as the loss reads them."""
INDEX_BYTES = 8
"""int64: token numbers, which the embedding's backward reads."""

Module = Literal[
    "core_attention", "norms", "attention_norm", "ffn_norm", "ffn_activation", "expert_activation", "latent_up"
]
MODULES: tuple[Module, ...] = get_args(Module)
"""What selective recomputation may recompute: scores and softmax; the norms' outputs, or that before attention or
before the feed-forward part alone; the product of gate and up, or that of routed experts alone; the up-projections of
latent attention. Under flash attention core_attention keeps nothing to recompute."""

_WITHIN: dict[Module, tuple[Module, ...]] = {
    "norms": ("attention_norm", "ffn_norm"),
    "ffn_activation": ("expert_activation",),
}

_Entry = tuple[Part, Module | None, Amount]
"""What of the layer keeps so many bytes a token, and the module whose recomputation saves them."""


@dataclass(frozen=True)
class Cut:
    """How a micro-batch and a layer are cut. ``tokens`` T = s·b/c of a tensor group; ``sequence_length`` whole s.

    ``norm_ranks`` q: t with sequence parallelism, 1 without. ``load_factor``: copies on the fullest expert rank over
    the mean. Each field is a number or an array.
    """

    tokens: Amount
    sequence_length: Amount = 0
    tensor_ranks: Amount = 1
    norm_ranks: Amount = 1
    expert_tensor_ranks: Amount = 1
    load_factor: Amount = 1.0


@dataclass(frozen=True)
class Kernels:
    """What the training code keeps. ``selective``: the modules that selective recomputation recomputes.

    Not ``fused_norm``: the normalised copy, before its weight, beside input and output. Not ``fused_gate``: the gate
    after its activation, beside gate, up and their product. Not ``regathered``: with sequence parallelism what products
    read is kept whole, in place of being gathered again. Not ``parallel_loss``: logits are gathered over tensor ranks.
    Only without ``flash`` is `Cut.sequence_length` read. Not ``cross_attention``: that of diffusion blocks to a text is
    left out.
    """

    flash: bool = True
    dropout: bool = False
    element_bytes: float = 2
    fused_norm: bool = True
    fused_gate: bool = True
    regathered: bool = True
    parallel_loss: bool = True
    cross_attention: bool = True
    selective: Collection[Module] = frozenset[Module](("core_attention",))


FLASH = Kernels()


def with_parts(modules: Collection[Module]) -> frozenset[Module]:
    """Modules and those that are part of them."""
    return frozenset(modules).union(*(_WITHIN.get(module, ()) for module in modules))


class Stored(NamedTuple):
    """Bytes a layer and micro-batch keep: recomputing nothing, the selective modules, everything (its input alone)."""

    kept: Amount
    selective: Amount
    input: Amount


def layer_bytes(kind: LayerKind | DiffusionBlock, cut: Cut, kernels: Kernels = FLASH) -> Stored:
    """Bytes that one layer keeps of one micro-batch on one device, at each level of recomputation.

    An indexer's tensors are not counted. A diffusion block counts as self-attention, a feed-forward part and 8h/q for
    its modulated copies and gated branches; a cross block also as its norm, queries and results of cross-attention, but
    not as keys, values and scores of the text.
    """
    kept: Amount = 0
    selective: Amount = 0
    again = with_parts(kernels.selective)
    for _, module, each in _entries(kind, cut, kernels):
        kept = kept + each
        if module not in again:
            selective = selective + each
    whole = kernels.element_bytes * kind.hidden / cut.norm_ranks
    return Stored(cut.tokens * kept, cut.tokens * selective, cut.tokens * whole)


def kept_by_part(
    kind: LayerKind | DiffusionBlock, cut: Cut, kernels: Kernels = FLASH, *, selective: bool = False
) -> dict[Part, Amount]:
    """The kept bytes of `layer_bytes`, or the selective ones, by the part of the layer whose backward reads them.

    Norms have what they read and write: inputs of attention, feed-forward and experts among it.
    """
    found: dict[Part, Amount] = {}
    again = with_parts(kernels.selective) if selective else frozenset[Module]()
    for part, module, each in _entries(kind, cut, kernels):
        if module not in again:
            found[part] = found.get(part, 0) + cut.tokens * each
    return found


def embedding_bytes(hidden: Amount, cut: Cut, *, dropout: bool = False) -> Amount:
    """Bytes that the embedding keeps of one micro-batch: token numbers, and a mask of its dropout. 8T + hT/q."""
    return cut.tokens * (INDEX_BYTES + (hidden / cut.norm_ranks if dropout else 0))


def head_bytes(hidden: Amount, vocab: Amount, cut: Cut, kernels: Kernels = FLASH) -> Amount:
    """Bytes that final norm, head and loss keep: norm in and out, fp32 logits. T·(4h/q + 4V/t).

    A vocabulary that the ranks do not divide is padded.
    """
    norm = sum(each for _, _, each in _norm("norms", hidden, cut, kernels))
    return cut.tokens * (norm + LOGIT_BYTES * logits_on_rank(vocab, cut, kernels))


def logits_on_rank(vocab: Amount, cut: Cut, kernels: Kernels) -> Amount:
    """Logits of a token that a rank holds."""
    return -(-vocab // cut.tensor_ranks) if kernels.parallel_loss else vocab + 0 * cut.tensor_ranks


def _entries(kind: LayerKind | DiffusionBlock, cut: Cut, kernels: Kernels) -> Iterator[_Entry]:
    h, q, e = kind.hidden, cut.norm_ranks, kernels.element_bytes
    second: Part = "dense_ffn" if isinstance(kind.feed_forward, Dense) else "experts"
    cross = (
        kind.attention
        if kernels.cross_attention and isinstance(kind, DiffusionBlock) and kind.kind == "cross"
        else None
    )
    parts: list[tuple[Part, Module]] = [("attention", "attention_norm"), (second, "ffn_norm")]
    parts += [("attention", "norms")] if cross else []
    for part, norm in parts:
        yield from _norm(norm, h, cut, kernels)
        if kernels.dropout:
            yield part, None, h / q
    yield from _attention(kind.attention, cut, kernels)
    if cross:
        yield from _cross_attention(cross, cut, kernels)
    yield from _feed_forward(kind.feed_forward, h, cut, kernels)
    if isinstance(kind, DiffusionBlock):
        yield "norms", None, 4 * e * h / q


def _norm(module: Module, h: Amount, cut: Cut, kernels: Kernels) -> Iterator[_Entry]:
    """Input; output, which products read; and the copy between them."""
    shared = kernels.element_bytes * h / cut.norm_ranks
    yield "norms", None, shared
    yield "norms", module, shared if kernels.regathered else kernels.element_bytes * h + 0 * shared
    if not kernels.fused_norm:
        yield "norms", module, shared


def _attention(attention: Attention, cut: Cut, kernels: Kernels) -> Iterator[_Entry]:
    a, t, q, e = attention.heads, cut.tensor_ranks, cut.norm_ranks, kernels.element_bytes
    if isinstance(attention, LatentAttention):
        query = attention.nope + attention.rope
        latents = 2 * (attention.q_lora or 0) + (attention.kv_lora + attention.rope) + attention.kv_lora
        yield "attention", None, e * latents / q
        yield "attention", "latent_up", e * a * (2 * query + attention.v) / t
        yield "attention", None, e * a * attention.v / t
    else:
        k, d = attention.kv_heads, attention.head_dim
        yield "attention", None, 2 * e * a * d / t
        yield "attention", None, 2 * e * k * d / np.minimum(t, k)
    if kernels.flash:
        yield "attention", None, STATISTIC_BYTES * a / t
    else:
        scores = a * cut.sequence_length / t
        yield "attention", "core_attention", (2 * e + 1 if kernels.dropout else e) * scores


def _cross_attention(attention: GroupedAttention, cut: Cut, kernels: Kernels) -> Iterator[_Entry]:
    a, t = attention.heads, cut.tensor_ranks
    yield "attention", None, 2 * kernels.element_bytes * a * attention.head_dim / t
    if kernels.flash:
        yield "attention", None, STATISTIC_BYTES * a / t


def _feed_forward(network: FeedForward, h: int, cut: Cut, kernels: Kernels) -> Iterator[_Entry]:
    e = kernels.element_bytes
    inputs = 2 if network.gated else 1
    results = 2 if network.gated and not kernels.fused_gate else 1
    if isinstance(network, Dense):
        yield "dense_ffn", None, inputs * e * network.ffn / cut.tensor_ranks
        yield "dense_ffn", "ffn_activation", results * e * network.ffn / cut.tensor_ranks
        return
    copies = network.top_k * cut.load_factor / cut.norm_ranks
    yield "router", None, ROUTER_BYTES * network.count / cut.norm_ranks
    yield "experts", None, copies * e * (cut.expert_tensor_ranks * h + inputs * network.ffn + h)
    yield "experts", "expert_activation", copies * results * e * network.ffn
    yield "shared_experts", None, inputs * e * network.shared_ffn / cut.tensor_ranks
    yield "shared_experts", "ffn_activation", results * e * network.shared_ffn / cut.tensor_ranks
