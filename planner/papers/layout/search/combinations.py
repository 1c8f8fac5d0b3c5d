"""The combinations of the search lists as arrays, pipeline shape by pipeline shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.papers.layout.problem import Search

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AXES = ("tp", "cp", "ep", "etp", "micro_batch", "sequence_parallel")
"""The lists that multiply within one pipeline shape and one treatment of states and activations."""


@dataclass(frozen=True)
class Inner:
    """Combinations of the lists in AXES, one an element of every array: all of them, or some."""

    place: Ints
    """Where each stands in the product of the whole lists, the last list fastest."""
    tp: Ints
    cp: Ints
    ep: Ints
    etp: Ints
    micro_batch: Ints
    sequence_parallel: Bools

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.place)

    def only(self, kept: Bools | Ints) -> Inner:
        """Those at some places, or that a mask keeps."""
        return Inner(*(values[kept] for values in vars(self).values()))


def every_inner(search: Search, most: int = 1 << 18) -> Iterator[Inner]:
    """All combinations of the lists in AXES, at most so many at once."""
    lists = [np.asarray(getattr(search, name)) for name in AXES]
    shape = tuple(len(values) for values in lists)
    size = int(np.prod(shape))
    for first in range(0, size, most):
        place = np.arange(first, min(first + most, size))
        columns = [values[at] for values, at in zip(lists, np.unravel_index(place, shape), strict=True)]
        yield Inner(place, *columns)
