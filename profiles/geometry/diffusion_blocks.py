"""The weights of a diffusion transformer: one block of each kind, and what stands around the blocks.

Sources: DiT, arXiv 2212.09748; Wan 2.1, arXiv 2503.20314; HunyuanVideo, arXiv 2412.03603; FLUX, its public model code.
Tensor parallelism splits attention and feed-forward parts; modulations and ends are copied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from profiles.geometry.attention import GroupedAttention
from profiles.geometry.feed_forward import Dense
from profiles.geometry.weights import Part, Weight, matrix, norm, on_rank, vector

BlockKind = Literal["adaln", "cross", "double", "single"]
TIME_FEATURES = 256


@dataclass(frozen=True)
class DiffusionBlock:
    """One block: ``adaln`` (DiT) has a modulation of its own, ``cross`` (Wan) attends to the text by cross-attention,
    ``double`` has weights of their own for image and text, ``single`` joins them and runs its parts side by side."""

    hidden: int
    heads: int
    ffn: int
    kind: BlockKind

    @property
    def name(self) -> str:
        """The kind."""
        return self.kind

    @property
    def attention(self) -> GroupedAttention:
        """Its self-attention."""
        norms: dict[BlockKind, Literal["none", "head", "full"]] = {"adaln": "none", "cross": "full"}
        return GroupedAttention(
            self.heads,
            self.heads,
            self.hidden // self.heads,
            # A single-stream block has one output product for both its parts, and one bias.
            bias="qkv" if self.kind == "single" else "attention",
            qk_norm=norms.get(self.kind, "head"),
        )

    @property
    def feed_forward(self) -> Dense:
        """Its feed-forward part."""
        return Dense(self.ffn, gated=False, bias=True)

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        """Every weight of one such block."""
        h = self.hidden
        attention, feed_forward = self.attention.weights(h), self.feed_forward.weights(h)
        if self.kind == "cross":
            twice = tuple(replace(weight, count=2, used=2) for weight in attention)
            return (*twice, *norm("cross_norm", h, "layer"), *feed_forward, vector("modulation", "norms", 6 * h))
        modulation = linear("modulation", "norms", (3 if self.kind == "single" else 6) * h, h)
        one = (*attention, *feed_forward, *modulation)
        return tuple(replace(weight, count=2) for weight in one) if self.kind == "double" else one

    @property
    def parameters(self) -> int:
        """Parameters of one such block."""
        return sum(weight.parameters for weight in self.weights)

    def on_rank(self, tensor_ranks: int = 1, expert_ranks: int = 1, expert_tensor_ranks: int = 1) -> tuple[int, int]:
        """Parameters of one such block on one rank, as `LayerKind.on_rank`: it has no experts."""
        return on_rank(self.weights, tensor_ranks, expert_ranks, expert_tensor_ranks)


def linear(name: str, part: Part, out_features: int, in_features: int) -> tuple[Weight, Weight]:
    """A product with its bias, copied on each rank."""
    return matrix(name, part, out_features, in_features), vector(f"{name}_bias", part, out_features)


def two_products(name: str, hidden: int, in_features: int, out_features: int) -> tuple[Weight, ...]:
    """An embedding of a condition: in_features to hidden to out_features, both with biases."""
    return (
        *linear(f"{name}_in", "embeddings", hidden, in_features),
        *linear(f"{name}_out", "embeddings", out_features, hidden),
    )


def adaln_ends(
    hidden: int, *, patch_values: int, output_values: int, positions: int = 0, labels: int = 0
) -> tuple[Weight, ...]:
    """Around the blocks of a DiT: patch, position, time and label embeddings, the modulated output.

    ``patch_values`` and ``output_values`` are the numbers in one patch going in and coming out.
    """
    return (
        *linear("patch", "embeddings", hidden, patch_values),
        matrix("positions", "embeddings", positions, hidden),
        *two_products("time", hidden, TIME_FEATURES, hidden),
        matrix("labels", "embeddings", labels, hidden),
        *linear("output_modulation", "head", 2 * hidden, hidden),
        *linear("output", "head", output_values, hidden),
    )


def cross_ends(hidden: int, *, patch_values: int = 64, text_width: int = 4096) -> tuple[Weight, ...]:
    """Around cross blocks: patch, text and time embeddings, the shared six-way modulation, the modulated head."""
    return (
        *linear("patch", "embeddings", hidden, patch_values),
        *two_products("text", hidden, text_width, hidden),
        *two_products("time", hidden, TIME_FEATURES, hidden),
        *linear("shared_modulation", "embeddings", 6 * hidden, hidden),
        *linear("output", "head", patch_values, hidden),
        vector("output_modulation", "head", 2 * hidden),
    )


def joint_ends(
    hidden: int, *, patch_values: int = 64, text_width: int = 4096, pooled_width: int = 768
) -> tuple[Weight, ...]:
    """Around joint blocks (FLUX): patch, text, pooled text, time and guidance embeddings, the modulated output."""
    return (
        *linear("patch", "embeddings", hidden, patch_values),
        *linear("text", "embeddings", hidden, text_width),
        *two_products("time", hidden, TIME_FEATURES, hidden),
        *two_products("guidance", hidden, TIME_FEATURES, hidden),
        *two_products("pooled", hidden, pooled_width, hidden),
        *linear("output_modulation", "head", 2 * hidden, hidden),
        *linear("output", "head", patch_values, hidden),
    )
