"""Bytes of a model's weights by part, each in the dtype it is kept in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from planner.derivation.moe.model import MoeModel
from planner.memory import inference as memory
from profiles.families import DTYPE_BYTES
from profiles.geometry.weights import Weight

_IN_ACTIVATION_DTYPE = ("embeddings", "head", "router", "norms")


def parts_beside_experts(model: MoeModel) -> list[str]:
    """The parts that attention devices hold."""
    return [part for part in model.geometry.parameters_by_part if part != "experts"]


class Kept(Protocol):
    """The dtypes that weights are kept in."""

    @property
    def dtype(self) -> str:
        """Of the products."""

    @property
    def experts_dtype(self) -> str:
        """Of the routed experts' products."""

    @property
    def activation_dtype(self) -> str:
        """Of what is not multiplied narrower."""


def weight_bytes(model: MoeModel, part: str, given: Kept) -> float:
    """Bytes of one part of the model, all layers: what is multiplied in its dtype, biases and the rest in 16 bits."""
    kept = given.experts_dtype if part == "experts" else given.dtype
    if part in _IN_ACTIVATION_DTYPE:
        kept = given.activation_dtype
    return memory.weight_bytes(
        ((weight, count) for weight, count in _weights(model) if weight.part == part),
        lambda weight: DTYPE_BYTES[given.activation_dtype if weight.vector else kept],
    )


def _weights(model: MoeModel) -> Iterable[tuple[Weight, int]]:
    for kind, count in model.every_kind:
        yield from ((weight, count) for weight in kind.weights)
    yield from ((weight, 1) for weight in model.geometry.ends)
