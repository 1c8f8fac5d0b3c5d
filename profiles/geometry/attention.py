"""The attention of a language model's layer: grouped heads (MHA, GQA, MQA) or a latent (MLA), maybe sparse (DSA).

Sources: GQA, arXiv 2305.13245; MLA and its absorbed form, DeepSeek-V2, arXiv 2405.04434; the lightning indexer,
DeepSeek-V3.2 (inference/model.py of its repository); sinks, the gpt-oss model card, arXiv 2508.10925.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profiles.geometry.weights import Weight, matrix, norm, vector

QkNorm = Literal["none", "head", "full"]
Biases = Literal["none", "qkv", "attention", "all"]


@dataclass(frozen=True)
class GroupedAttention:
    """`heads` query heads over `kv_heads` key-value heads of `head_dim`; `window` keys at most where it slides.

    `qk_norm`: "head" scales each head by one vector of head_dim, "full" all heads by one of their joint width.
    """

    heads: int
    kv_heads: int
    head_dim: int
    bias: Biases = "none"
    qk_norm: QkNorm = "none"
    sinks: bool = False
    window: int | None = None

    @property
    def kv_elements(self) -> int:
        """Numbers one token keeps in this layer's cache."""
        return 2 * self.kv_heads * self.head_dim

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """Query, key, value and output projections, their biases, q/k norms and sinks."""
        q, kv, d = self.heads * self.head_dim, self.kv_heads * self.head_dim, self.head_dim
        found = [
            matrix("q", "attention", q, hidden, "out", self.heads),
            matrix("k", "attention", kv, hidden, "out", self.kv_heads),
            matrix("v", "attention", kv, hidden, "out", self.kv_heads),
            matrix("o", "attention", hidden, q, "in", self.heads),
        ]
        if self.bias != "none":
            found += [
                vector("q_bias", "attention", q, "out", self.heads),
                vector("k_bias", "attention", kv, "out", self.kv_heads),
                vector("v_bias", "attention", kv, "out", self.kv_heads),
            ]
        if self.bias in ("attention", "all"):
            found.append(vector("o_bias", "attention", hidden))
        if self.qk_norm == "head":
            found += [vector("q_norm", "norms", d), vector("k_norm", "norms", d)]
        if self.qk_norm == "full":
            found += [
                vector("q_norm", "norms", q, "out", self.heads),
                vector("k_norm", "norms", kv, "out", self.kv_heads),
            ]
        if self.sinks:
            found.append(vector("sinks", "attention", self.heads, "out", self.heads))
        return tuple(found)

    def keys_read(self, context: int) -> int:
        """Keys that a query attends to when it is token number `context` (itself counted)."""
        return context if self.window is None else min(context, self.window)

    def flops(self, context: int, *, absorbed: bool) -> int:
        """Forward FLOPs of one query's scores and of their product with the values. Nothing here is absorbed."""
        del absorbed
        return 4 * self.heads * self.head_dim * self.keys_read(context)


@dataclass(frozen=True)
class Indexer:
    """The lightning indexer of DeepSeek sparse attention: it scores all keys, and attention reads the `top_k` best."""

    heads: int
    head_dim: int
    top_k: int

    def weights(self, hidden: int, query_width: int) -> tuple[Weight, ...]:
        """Queries from the compressed query, one key, a layer norm of it, and the weight of each head. Never split."""
        return (
            matrix("index_q", "indexer", self.heads * self.head_dim, query_width),
            matrix("index_k", "indexer", self.head_dim, hidden),
            vector("index_k_norm", "indexer", self.head_dim),
            vector("index_k_norm_shift", "indexer", self.head_dim),
            matrix("index_weights", "indexer", self.heads, hidden),
        )


@dataclass(frozen=True)
class LatentAttention:
    """MLA: keys and values from a latent of `kv_lora` and a shared rotary key of `rope`; queries from `q_lora` or,
    where it is None, straight from the hidden state. `nope`, `rope` and `v` are widths of one head."""

    heads: int
    kv_lora: int
    nope: int
    rope: int
    v: int
    q_lora: int | None = None
    indexer: Indexer | None = None

    @property
    def kv_elements(self) -> int:
        """Numbers one token keeps in this layer's cache: the latent, the rotary key, and the indexer's key."""
        return self.kv_lora + self.rope + (self.indexer.head_dim if self.indexer else 0)

    @property
    def window(self) -> None:
        """It never slides."""
        return None

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """Down and up projections with their norms, the output projection, and the indexer's."""
        queries = self.heads * (self.nope + self.rope)
        width = self.q_lora or hidden
        found = [
            matrix("q_b" if self.q_lora else "q", "attention", queries, width, "out", self.heads),
            matrix("kv_a", "attention", self.kv_lora + self.rope, hidden),
            matrix("kv_b", "attention", self.heads * (self.nope + self.v), self.kv_lora, "out", self.heads),
            matrix("o", "attention", hidden, self.heads * self.v, "in", self.heads),
            *norm("kv_a_norm", self.kv_lora, "rms"),
        ]
        if self.q_lora:
            found += [matrix("q_a", "attention", self.q_lora, hidden), *norm("q_a_norm", self.q_lora, "rms")]
        if self.indexer:
            found += self.indexer.weights(hidden, width)
        return tuple(found)

    def keys_read(self, context: int) -> int:
        """Keys that a query attends to when it is token number `context` (itself counted)."""
        return context if self.indexer is None else min(context, self.indexer.top_k)

    def flops(self, context: int, *, absorbed: bool) -> int:
        """Forward FLOPs of one query: scores, their product with the values, and the indexer's scores of all keys.

        Absorbed (decoding) the query meets the latent itself, so the cache is never expanded; the products around it
        cost the same either way.
        """
        width = 2 * self.kv_lora + self.rope if absorbed else self.nope + self.rope + self.v
        index = 2 * self.indexer.heads * self.indexer.head_dim * context if self.indexer else 0
        return 2 * self.heads * width * self.keys_read(context) + index


Attention = GroupedAttention | LatentAttention
