"""What the memory model asks of a model: layers in order, and the weights around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from profiles.geometry.diffusion_blocks import DiffusionBlock
from profiles.geometry.model import LayerKind
from profiles.geometry.weights import Weight

Layer = LayerKind | DiffusionBlock


class Run(Protocol):
    """Consecutive layers of one kind."""

    @property
    def kind(self) -> Layer:
        """The kind."""

    @property
    def count(self) -> int:
        """How many."""


class Model(Protocol):
    """A `ModelGeometry` or a `DiTGeometry`."""

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def hidden(self) -> int:
        """Width of a token."""

    @property
    def runs(self) -> Sequence[Run]:
        """The layers in order."""

    @property
    def ends(self) -> Sequence[Weight]:
        """Weights around the layers: parts embeddings first, then norms and head."""
