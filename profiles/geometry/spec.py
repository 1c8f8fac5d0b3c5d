"""A language model's sizes as a file or an object states them; the letters of the memory page, spelt out."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from profiles.geometry.attention import Attention, GroupedAttention, Indexer, LatentAttention
from profiles.geometry.feed_forward import Dense, Experts, FeedForward
from profiles.geometry.model import LayerKind, LayerRun, ModelGeometry
from profiles.validation import Part

MAX_LAYERS = 10_000
Size = Annotated[int, Field(ge=1, le=1 << 24)]
Amount = Annotated[int, Field(ge=0, le=1 << 24)]
Layer = Annotated[int, Field(ge=0, lt=MAX_LAYERS)]


class LatentSpec(Part):
    """Multi-head latent attention: ranks of the query's and the key-value's compression, widths of one head."""

    q_lora: Size | None = Field(None, description="null: queries are not compressed")
    kv_lora: Size
    nope: Size
    rope: Size
    v: Size


class IndexerSpec(Part):
    """DeepSeek sparse attention: the indexer's heads and the keys it lets through."""

    num_heads: Size
    head_dim: Size
    top_k: Size


class SlidingSpec(Part):
    """Which layers, counted from 0, attend to the last `window` tokens only."""

    window: Size
    layers: list[Layer]


class ExpertsSpec(Part):
    """Experts of the layers that have any: all but the first `first_dense`, or all but `dense_layers`."""

    num_experts: Size
    top_k: Size
    ffn: Size
    shared_ffn: Amount = 0
    first_dense: Annotated[int, Field(ge=0, le=MAX_LAYERS)] = 0
    dense_layers: list[Layer] | None = Field(None, description="in place of first_dense, where they are not the first")
    bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False

    @model_validator(mode="after")
    def _chosen_exist(self) -> Self:
        if self.top_k > self.num_experts:
            raise ValueError(f"expected top_k <= num_experts = {self.num_experts}, got {self.top_k}")
        if self.dense_layers is not None and self.first_dense:
            raise ValueError("state first_dense or dense_layers, not both")
        return self


class ModelSpec(Part):
    """The sizes of one decoder. Grouped heads need num_kv_heads and head_dim; mla takes their place."""

    name: Annotated[str, Field(min_length=1, max_length=100)] = "custom"
    hidden: Size
    num_layers: Annotated[int, Field(ge=1, le=MAX_LAYERS)]
    num_heads: Size
    num_kv_heads: Size | None = Field(None, description="null: as many as num_heads")
    head_dim: Size | None = Field(None, description="null: hidden / num_heads")
    ffn: Amount = Field(0, description="of the dense layers; 0 if there are none")
    vocab: Size
    tied: bool = False
    norm: Literal["rms", "layer"] = "rms"
    bias: Literal["none", "qkv", "attention", "all"] | bool = Field(
        "none", description="qkv; attention: and its output; all (or true): the dense feed-forward too"
    )
    gated: bool = True
    positions: Amount = Field(0, description="learned position vectors; 0: rotary or none")
    qk_norm: Literal["none", "head", "full"] | bool = Field("none", description="true is head")
    sinks: bool = False
    sliding: SlidingSpec | None = None
    moe: ExpertsSpec | None = None
    mla: LatentSpec | None = None
    indexer: IndexerSpec | None = None
    mtp_layers: Annotated[int, Field(ge=0, le=100)] = Field(0, description="multi-token-prediction modules")
    source: str = Field("", description="where the sizes come from")

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        if self.mla is None:
            if self.indexer is not None:
                raise ValueError("indexer goes with mla")
            if self.head_dim is None and self.hidden % self.num_heads:
                raise ValueError(f"state head_dim: num_heads {self.num_heads} does not divide hidden {self.hidden}")
            if self.num_heads % (self.num_kv_heads or self.num_heads):
                raise ValueError(f"expected num_kv_heads to divide num_heads {self.num_heads}, got {self.num_kv_heads}")
        elif self._grouped_only():
            raise ValueError(f"mla goes without {', '.join(self._grouped_only())}")
        listed = [*(self.sliding.layers if self.sliding else ()), *((self.moe and self.moe.dense_layers) or ())]
        if any(layer >= self.num_layers for layer in listed):
            raise ValueError(f"expected layers below num_layers = {self.num_layers}, got {max(listed)}")
        if not self.ffn and self._dense():
            raise ValueError("state ffn: there are dense layers")
        return self

    def _grouped_only(self) -> list[str]:
        """The fields given that only grouped heads have."""
        unset: tuple[object, ...] = (None, False, "none", self.num_heads)
        names = ("num_kv_heads", "head_dim", "sliding", "sinks", "bias", "qk_norm")
        return [name for name in names if getattr(self, name) not in unset]

    def _dense(self) -> set[int]:
        """The layers without experts."""
        if self.moe is None:
            return set(range(self.num_layers))
        listed = self.moe.dense_layers
        return set(range(min(self.moe.first_dense, self.num_layers)) if listed is None else listed)

    def geometry(self) -> ModelGeometry:
        """The geometry of these sizes."""
        sliding = set(self.sliding.layers) if self.sliding else set()
        dense = self._dense()
        marks = [(layer in dense, layer in sliding) for layer in range(self.num_layers)]
        runs = [LayerRun(self._kind(*mark), len(list(group))) for mark, group in groupby(marks)]
        return ModelGeometry(
            self.name, self.hidden, self.vocab, tuple(runs), self.tied, self.norm, self.positions, self.mtp_layers
        )

    def _kind(self, dense: bool, sliding: bool) -> LayerKind:
        return LayerKind(self.hidden, self._attention(sliding), self._feed_forward(dense), self.norm)

    def _attention(self, sliding: bool) -> Attention:
        if self.mla is not None:
            given = self.indexer
            indexer = Indexer(given.num_heads, given.head_dim, given.top_k) if given else None
            return LatentAttention(self.num_heads, **self.mla.model_dump(), indexer=indexer)
        return GroupedAttention(
            heads=self.num_heads,
            kv_heads=self.num_kv_heads or self.num_heads,
            head_dim=self.head_dim or self.hidden // self.num_heads,
            bias=("all" if self.bias else "none") if isinstance(self.bias, bool) else self.bias,
            qk_norm=("head" if self.qk_norm else "none") if isinstance(self.qk_norm, bool) else self.qk_norm,
            sinks=self.sinks,
            window=self.sliding.window if sliding and self.sliding else None,
        )

    def _feed_forward(self, dense: bool) -> FeedForward:
        if dense or self.moe is None:
            return Dense(self.ffn, self.gated, self.bias in ("all", True))
        moe = self.moe
        return Experts(
            count=moe.num_experts,
            top_k=moe.top_k,
            ffn=moe.ffn,
            shared_ffn=moe.shared_ffn,
            gated=self.gated,
            bias=moe.bias,
            router_bias=moe.router_bias,
            shared_gate=moe.shared_gate,
        )
