"""The matrix products that a layer's weights stand for, as kernels run them: what reads the same rows is one product.

Query, key and value projections are one, so are the two compressions of latent attention, and gate and up of a gated
feed-forward; vLLM, SGLang and TensorRT-LLM all store them so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from profiles.geometry.weights import Weight

_TOGETHER = (("q", "k", "v"), ("q_a", "kv_a"), ("gate", "up"), ("shared_gate", "shared_up"))


@dataclass(frozen=True)
class Product:
    """(rows, in_features) by (in_features, out_features). `name` joins the names of the weights with +."""

    name: str
    out_features: int
    in_features: int


def products(weights: Iterable[Weight]) -> tuple[Product, ...]:
    """The products of weights that every token passes, in their order; vectors make none."""
    groups: dict[str, list[Weight]] = {}
    for weight in weights:
        if not weight.vector:
            group = next(("+".join(names) for names in _TOGETHER if weight.name in names), weight.name)
            groups.setdefault(group, []).append(weight)
    return tuple(
        Product("+".join(w.name for w in group), sum(w.out_features for w in group), group[0].in_features)
        for group in groups.values()
    )
