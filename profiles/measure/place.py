"""What can be measured: a curve fixes everything but one size, a place is a size on a curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

from profiles.families import COLLECTIVES, DTYPE_BYTES, FAMILIES

COPY_BYTES = 64


def element_bytes(dtype: str) -> int:
    """Bytes of one element as it lies in memory."""
    return math.ceil(DTYPE_BYTES[dtype])


@dataclass(frozen=True, order=True)
class Curve:
    """One operation with all axes fixed but the last; `fixed` holds (axis, value) in the order of the family's axes."""

    family: str
    dtype: str
    backend: str
    workload: str
    fixed: tuple[tuple[str, int], ...]

    @property
    def along(self) -> str:
        """The axis that is free."""
        return FAMILIES[self.family].along

    @property
    def values(self) -> dict[str, int]:
        """The fixed axes by name."""
        return dict(self.fixed)

    @property
    def step(self) -> int:
        """Sizes along the curve are multiples of this: messages divide into whole elements for each rank."""
        if self.family == "memory_copy":
            return COPY_BYTES
        if self.family not in COLLECTIVES:
            return 1
        return element_bytes(self.dtype) * self.values["ranks"]

    def words(self) -> str:
        """The curve for people: ``gemm fp32 n 256, k 1024``."""
        name = " ".join(part for part in (self.family, self.dtype, self.backend, self.workload) if part)
        axes = ", ".join(f"{axis} {value}" for axis, value in self.fixed)
        return f"{name} {axes}".strip()


@dataclass(frozen=True, order=True)
class Place:
    """A size on a curve."""

    curve: Curve
    size: int

    @property
    def axes(self) -> dict[str, int]:
        """All axes by name."""
        return {**self.curve.values, self.curve.along: self.size}

    def words(self) -> str:
        """The place for people."""
        return f"{self.curve.words()}{', ' if self.curve.fixed else ' '}{self.curve.along} {self.size}"


@dataclass(frozen=True)
class Sample:
    """What was measured at a place: the median of `count` runs in seconds, their interquartile range over it."""

    median_s: float
    spread: float
    count: int
    kernel: str
    clock_hz: float | None = None
    throttled: str = ""


@dataclass(frozen=True)
class Unmeasured:
    """A place without a sample, and why."""

    reason: str


@dataclass(frozen=True)
class Ladder:
    """A curve and the sizes it starts with, ascending."""

    curve: Curve
    sizes: tuple[int, ...]
