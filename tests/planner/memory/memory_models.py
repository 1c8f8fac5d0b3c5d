"""Models that the memory page counts, beside the built-in ones."""

from __future__ import annotations

from profiles.geometry import ModelGeometry
from profiles.geometry.spec import ExpertsSpec, ModelSpec


def gpt(hidden: int, layers: int, heads: int, vocab: int = 51200) -> ModelGeometry:
    """GPT with biases everywhere, layer norms, 2,048 learned positions and a tied head."""
    return ModelSpec(
        name=f"gpt-{hidden}",
        hidden=hidden,
        num_layers=layers,
        num_heads=heads,
        ffn=4 * hidden,
        vocab=vocab,
        tied=True,
        norm="layer",
        bias="all",
        gated=False,
        positions=2048,
    ).geometry()


def mixture(dense: int, layers: int) -> ModelGeometry:
    """A small model with experts in all but its first layers."""
    moe = ExpertsSpec(num_experts=8, top_k=2, ffn=64, first_dense=dense)
    return ModelSpec(hidden=64, num_layers=layers, num_heads=4, ffn=256, vocab=512, moe=moe).geometry()
