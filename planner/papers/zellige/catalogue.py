"""The modes of an instance as flat arrays, for the bounds (page 4.6): one row a mode, kinds contiguous."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.papers.zellige.instance import Instance, Mode

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True)
class Catalogue:
    """``starts[i]`` is the first mode of kind i, ``kind_of`` the kind of a mode, ``counts[i]`` its members n_i.

    ``degree`` is λ, ``time`` p [s], ``memory`` m as a fraction of the cap: dividing first keeps every comparison
    at the same relative precision whatever the user's units.
    """

    num_ranks: int
    starts: Ints
    kind_of: Ints
    counts: Floats
    degree: Floats
    time: Floats
    memory: Floats

    @classmethod
    def of(cls, instance: Instance) -> Catalogue:
        """Flatten an instance whose kinds all have a mode, without modes that no bound can tell from a better one."""
        useful = [_useful(kind.modes) for kind in instance.kinds]
        modes = [mode for of_kind in useful for mode in of_kind]
        sizes = np.array([len(of_kind) for of_kind in useful], dtype=np.intp)
        return cls(
            num_ranks=instance.num_ranks,
            starts=np.concatenate((np.zeros(1, dtype=np.intp), np.cumsum(sizes)[:-1])),
            kind_of=np.repeat(np.arange(len(sizes), dtype=np.intp), sizes),
            counts=np.array([kind.count for kind in instance.kinds], dtype=np.float64),
            degree=np.array([mode.degree for mode in modes], dtype=np.float64),
            time=np.array([mode.time_s for mode in modes], dtype=np.float64),
            memory=np.array([mode.memory_bytes for mode in modes], dtype=np.float64) / instance.memory_cap_bytes,
        )

    def least(self, cost: Floats) -> Floats:
        """The least cost over the modes of each kind; ``cost`` has modes on its last axis (inf = not allowed)."""
        return np.minimum.reduceat(cost, self.starts, axis=-1)

    def total(self, per_kind: Floats) -> float:
        """Sum over all sequences of a per-kind cost, correctly rounded."""
        return math.fsum((self.counts * per_kind).tolist())


def _useful(modes: tuple[Mode, ...]) -> list[Mode]:
    """Modes that no other of equal degree beats in both time and memory."""
    kept: list[Mode] = []
    degree, least = 0, math.inf
    for mode in sorted(modes, key=lambda mode: (mode.degree, mode.time_s, mode.memory_bytes)):
        if mode.degree != degree:
            degree, least = mode.degree, math.inf
        if mode.memory_bytes < least:
            kept.append(mode)
            least = mode.memory_bytes
    return kept
