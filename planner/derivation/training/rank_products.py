"""The products of a layer's weights as one rank of a tensor-parallel group sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from profiles.geometry.products import Product, products
from profiles.geometry.weights import Weight


@dataclass(frozen=True)
class RankProduct:
    """A product on one rank; ``whole`` marks those that every rank holds whole and runs on its own tokens."""

    product: Product
    whole: bool


def rank_products(weights: Iterable[Weight], tensor_ranks: int) -> tuple[RankProduct, ...]:
    """Cut by output features, cut by input features, and whole. Raises ProfileError: ranks that do not divide them."""
    given = tuple(weights)
    return tuple(
        RankProduct(product, split == "copied")
        for split in ("out", "in", "copied")
        for product in cut_products((weight for weight in given if weight.split == split), tensor_ranks)
    )


def cut_products(weights: Iterable[Weight], tensor_ranks: int) -> tuple[Product, ...]:
    """What reads the same rows is one product; vectors make none. Raises ProfileError as above."""
    return products(_share(weight, tensor_ranks) for weight in weights if not weight.vector)


def _share(weight: Weight, ranks: int) -> Weight:
    """The weight as one rank holds it; key-value heads fewer than ranks are held by several."""
    numbers = weight.on_rank(ranks)
    if weight.split == "in":
        return replace(weight, in_features=numbers // weight.out_features)
    return replace(weight, out_features=numbers // weight.in_features)
