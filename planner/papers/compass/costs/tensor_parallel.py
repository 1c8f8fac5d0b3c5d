"""The GEMMs of a model's layers that tensor parallelism cuts, as one rank sees them.

Column-parallel ones (query, key, value; the way into a feed-forward) need the activation of all tokens; row-parallel
ones (the way out of attention and feed-forward) leave a sum over ranks to be made. What every rank holds whole (router,
down-projections of latent attention) works on a rank's own tokens: nothing is gathered for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.derivation.training.rank_products import cut_products
from profiles.geometry.model import LayerKind, ModelGeometry

PARTS = ("attention", "dense_ffn", "shared_experts")

_NAMES = {
    "q+k+v": "qkv",
    "q": "q",
    "q_b": "q_up",
    "kv_b": "kv_up",
    "o": "proj",
    "gate+up": "fc1",
    "up": "fc1",
    "down": "fc2",
    "shared_gate+shared_up": "shared_fc1",
    "shared_up": "shared_fc1",
    "shared_down": "shared_fc2",
}
"""Megatron's names of the weights that `profiles.geometry` names."""


@dataclass(frozen=True)
class Cut:
    """A weight of ``layers`` layers that is cut over ranks: forward (M, k) by (k, n) on one of them."""

    name: str
    column_parallel: bool
    n: int
    k: int
    layers: int

    @property
    def width(self) -> int:
        """Numbers of one token that all ranks have in common: gathered before, or reduced behind the GEMM."""
        return self.k if self.column_parallel else self.n


def cuts(geometry: ModelGeometry, ranks: int) -> tuple[Cut, ...]:
    """All of them, in the order of a layer; equal ones of several kinds of layer are one.

    Raises ProfileError (out_of_range) if ranks do not divide heads or features.
    """
    layers: dict[Cut, int] = {}
    for kind, count in geometry.kinds():
        for cut in _of_layer(kind, ranks):
            layers[cut] = layers.get(cut, 0) + count
    return tuple(replace(cut, layers=count) for cut, count in layers.items())


def _of_layer(kind: LayerKind, ranks: int) -> list[Cut]:
    found = []
    for split in ("out", "in"):
        mine = [weight for weight in kind.weights if weight.part in PARTS and weight.split == split]
        for product in cut_products(mine, ranks):
            found.append(Cut(_NAMES[product.name], split == "out", product.out_features, product.in_features, 0))
    return found
