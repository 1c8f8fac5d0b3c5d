"""What a layer's time is made of: parts with a component, a family of the profile, seconds and their source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from planner.derivation.account import Floats
from planner.derivation.training.cuts import Bools, Ints
from profiles.priced import Sources

Component = Literal["gemm", "attention", "experts", "elementwise", "tp", "cp", "ep"]
COMPONENTS: tuple[Component, ...] = get_args(Component)
COMPUTED: tuple[Component, ...] = ("gemm", "attention", "experts", "elementwise")
COMMUNICATED: tuple[Component, ...] = ("tp", "cp", "ep")
"""``tp`` and ``ep`` are exposed; ``cp`` is the whole ring, of which attention hides as much as it takes."""


@dataclass(frozen=True)
class Part:
    """Seconds of one kind of work, arrays over the layouts; ``source`` indexes `profiles.priced.SOURCES`.

    ``family`` is the profile's, with the dtype where it has several ("gemm/bf16"); "network" between nodes.
    """

    component: Component
    family: str
    seconds: Floats
    source: Sources


@dataclass(frozen=True)
class LayerTimes:
    """Parts of one layer's forward and backward, one micro-batch, and of what selective recomputation runs again.

    ``cp`` are their context ranks. ``missing`` marks layouts that the profile or the cluster has no price for,
    ``reasons`` say why (by family, the first message); their seconds are nan.
    """

    forward: tuple[Part, ...]
    backward: tuple[Part, ...]
    selective: tuple[Part, ...]
    cp: Ints
    missing: Bools
    reasons: dict[str, str] = field(default_factory=dict)

    def by_component(self, way: Literal["forward", "backward", "selective"]) -> dict[Component, Floats]:
        """Seconds of every component, 0 where a layer has none of it."""
        sums: dict[Component, Floats] = {component: np.zeros(len(self.missing)) for component in COMPONENTS}
        for part in getattr(self, way):
            sums[part.component] = sums[part.component] + part.seconds
        return sums
