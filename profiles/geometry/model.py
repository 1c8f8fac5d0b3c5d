"""A language model's geometry: its layers, and what they hold, compute and keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from profiles.errors import ProfileError
from profiles.geometry.attention import Attention
from profiles.geometry.diffusion import element_bytes
from profiles.geometry.feed_forward import Dense, FeedForward
from profiles.geometry.weights import PARTS, Part, Weight, by_part, matrix, norm, on_rank

Norm = Literal["rms", "layer"]


@dataclass(frozen=True)
class LayerKind:
    """One kind of layer. `name` is dense or moe, with _sliding where attention slides."""

    hidden: int
    attention: Attention
    feed_forward: FeedForward
    norm: Norm = "rms"

    @property
    def name(self) -> str:
        """dense or moe, and whether it slides."""
        kind = "dense" if isinstance(self.feed_forward, Dense) else "moe"
        return kind if self.attention.window is None else f"{kind}_sliding"

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        """Every weight of one such layer, norms included."""
        return (
            *norm("attention_norm", self.hidden, self.norm),
            *self.attention.weights(self.hidden),
            *norm("ffn_norm", self.hidden, self.norm),
            *self.feed_forward.weights(self.hidden),
        )

    @property
    def parameters(self) -> int:
        """Parameters of one such layer."""
        return sum(weight.parameters for weight in self.weights)

    @property
    def used_parameters(self) -> int:
        """Those that one token passes: of the experts only its own."""
        return sum(weight.used_parameters for weight in self.weights)

    @property
    def linear_flops_per_token(self) -> int:
        """Forward FLOPs of its products with weights, for one token."""
        return sum(weight.flops_per_token for weight in self.weights)

    @property
    def parameters_by_part(self) -> dict[Part, int]:
        """Parameters of one such layer: attention, indexer, dense_ffn, experts, shared_experts, router, norms."""
        return by_part(self.weights, lambda weight: weight.parameters)

    @property
    def linear_flops_by_part(self) -> dict[Part, int]:
        """`linear_flops_per_token` by part: what an attention device does, and what an expert device does."""
        return by_part(self.weights, lambda weight: weight.flops_per_token)

    def on_rank(self, tensor_ranks: int = 1, expert_ranks: int = 1, expert_tensor_ranks: int = 1) -> tuple[int, int]:
        """Parameters of one such layer on one rank: all but the experts, and the experts. Raises `ProfileError`."""
        return on_rank(self.weights, tensor_ranks, expert_ranks, expert_tensor_ranks)


@dataclass(frozen=True)
class LayerRun:
    """`count` consecutive layers of one kind."""

    kind: LayerKind
    count: int


@dataclass(frozen=True)
class ModelGeometry:
    """A decoder: embedding, layers in order, final norm, head. `positions` learned position vectors (0: rotary).

    `mtp_layers` multi-token-prediction modules, each one more layer of the last kind, are no part of the totals, as
    in the published sizes; `mtp_parameters` has them.
    """

    name: str
    hidden: int
    vocab: int
    runs: tuple[LayerRun, ...]
    tied: bool = False
    norm: Norm = "rms"
    positions: int = 0
    mtp_layers: int = 0

    @property
    def num_layers(self) -> int:
        """All layers."""
        return sum(run.count for run in self.runs)

    def kinds(self) -> tuple[tuple[LayerKind, int], ...]:
        """The kinds of layer that occur, each with how many there are, in order of first occurrence."""
        counts: dict[LayerKind, int] = {}
        for run in self.runs:
            counts[run.kind] = counts.get(run.kind, 0) + run.count
        return tuple(counts.items())

    @cached_property
    def ends(self) -> tuple[Weight, ...]:
        """What stands around the layers. A tied head has no weights of its own and still computes."""
        found = [matrix("embedding", "embeddings", self.vocab, self.hidden, "out")]
        if self.positions:
            found.append(matrix("positions", "embeddings", self.positions, self.hidden))
        found += norm("final_norm", self.hidden, self.norm)
        if not self.tied:
            found.append(matrix("head", "head", self.vocab, self.hidden, "out"))
        return tuple(found)

    @cached_property
    def parameters_by_part(self) -> dict[Part, int]:
        """Parameters of embeddings, attention, indexer, dense_ffn, experts, shared_experts, router, norms and head."""
        sums = by_part(self.ends, lambda weight: weight.parameters)
        for kind, count in self.kinds():
            for part, amount in kind.parameters_by_part.items():
                sums[part] = sums.get(part, 0) + count * amount
        return {part: sums[part] for part in PARTS if part in sums}

    @property
    def parameters(self) -> int:
        """All parameters, multi-token prediction left out."""
        return sum(self.parameters_by_part.values())

    @property
    def active_parameters(self) -> int:
        """Those that one token passes, the whole embedding and head counted: published figures differ in these two."""
        layers = sum(count * kind.used_parameters for kind, count in self.kinds())
        return layers + sum(weight.parameters for weight in self.ends)

    @property
    def mtp_parameters(self) -> int:
        """Of all multi-token-prediction modules: two norms, a (2 hidden to hidden) product, a layer, a norm each.

        Embedding and head are the model's own (DeepSeek-V3, arXiv 2412.19437, section 2.2).
        """
        scale = self.hidden if self.norm == "rms" else 2 * self.hidden
        module = 3 * scale + 2 * self.hidden**2 + self.runs[-1].kind.parameters
        return self.mtp_layers * module

    def weight_bytes(self, dtype: str) -> int:
        """Bytes of all parameters at one dtype. Raises `ProfileError` for an unknown dtype."""
        return round(self.parameters * element_bytes(dtype))

    @property
    def head_flops_per_token(self) -> int:
        """Forward FLOPs of the head for one token."""
        return 2 * self.vocab * self.hidden

    @property
    def linear_flops_per_token(self) -> int:
        """Forward FLOPs of all products with weights for one token, head included; a look-up costs nothing."""
        return self.head_flops_per_token + sum(count * kind.linear_flops_per_token for kind, count in self.kinds())

    def attention_flops(self, context: int, *, absorbed: bool = True) -> int:
        """Forward FLOPs of attention in all layers for one query that is token number `context`.

        `absorbed` is how a latent is met: True as decoding does, False as prefill and training do. Raises
        `ProfileError` for a context below 1.
        """
        _at_least_one("context", context)
        return self._over_layers(lambda kind: kind.attention.flops(context, absorbed=absorbed))

    def decode_flops(self, context: int) -> int:
        """Forward FLOPs of one token that is number `context` of its sequence."""
        return self.linear_flops_per_token + self.attention_flops(context)

    def prefill_flops(self, tokens: int) -> int:
        """Forward FLOPs of a sequence of `tokens`, causal, with the head for every token."""
        _at_least_one("tokens", tokens)

        def causal(kind: LayerKind) -> int:
            # Up to the window (or the indexer's choice) keys grow by one a query, from there they stay; flops is
            # linear in both parts, so the sum over queries is one evaluation of each.
            attention = kind.attention
            full = attention.keys_read(tokens)
            first, last = attention.flops(1, absorbed=False), attention.flops(full, absorbed=False)
            rising = (first + last) * full // 2
            end = attention.flops(tokens, absorbed=False)
            after = attention.flops(full + 1, absorbed=False) if tokens > full else end
            return rising + (after + end) * (tokens - full) // 2

        return tokens * self.linear_flops_per_token + self._over_layers(causal)

    def kv_bytes_per_token(self, dtype: str) -> int:
        """Bytes one more token adds to the cache of all layers, until a window is full."""
        return round(self._over_layers(lambda kind: kind.attention.kv_elements) * element_bytes(dtype))

    def kv_bytes(self, tokens: int, dtype: str) -> int:
        """Bytes of the cache of one sequence of `tokens`; a sliding layer keeps its window and no more."""

        def kept(kind: LayerKind) -> int:
            window = kind.attention.window
            return kind.attention.kv_elements * (tokens if window is None else min(tokens, window))

        return round(self._over_layers(kept) * element_bytes(dtype))

    def _over_layers(self, amount: Callable[[LayerKind], int]) -> int:
        return sum(count * amount(kind) for kind, count in self.kinds())


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise ProfileError(f"expected {name} >= 1, got {value}", code="out_of_range", where=name)
