"""What a row of a plan decides; all else in it follows."""

from __future__ import annotations

from typing import NamedTuple

from planner.papers.layout.problem import RECOMPUTE, Recompute
from planner.papers.layout.solution import Figures

TOLERANCE = 1e-9
"""Relative difference within which two figures agree."""
EXACT = 1e-12
"""Relative difference that rounding alone leaves between two ways to compute one figure."""


class Decision(NamedTuple):
    """The page's t, c, p, v, e, u, z, recomputation, b and sequence parallelism, and layers by virtual stage."""

    tp: int
    cp: int
    pp: int
    vpp: int
    ep: int
    etp: int
    zero_stage: int
    recompute: Recompute
    micro_batch: int
    sequence_parallel: bool
    partition: tuple[int, ...]

    @property
    def place(self) -> tuple[int | bool | tuple[int, ...], ...]:
        """Where it stands among equals, ascending."""
        return (*self[:7], RECOMPUTE.index(self.recompute), *self[8:])

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self._asdict().items() if value not in (1, False))


def decision_of(row: Figures) -> Decision:
    """Of one row of a plan."""
    return Decision(*(getattr(row, name) for name in Decision._fields))
