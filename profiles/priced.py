"""A price and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.float64]
Sources = npt.NDArray[np.int8]

SOURCES = ("measured", "interpolated", "modelled", "stated")
MEASURED, INTERPOLATED, MODELLED, STATED = range(4)


@dataclass(frozen=True)
class Priced:
    """Seconds and, element for element, an index into `SOURCES`. Both have the broadcast shape of the lookup."""

    seconds: Seconds
    source: Sources

    def shares(self) -> dict[str, float]:
        """The fraction of the elements that came from each source; all four names are present."""
        total = max(self.source.size, 1)
        return {name: float(np.count_nonzero(self.source == index)) / total for index, name in enumerate(SOURCES)}


def stated(seconds: Seconds) -> Priced:
    """Seconds that follow from numbers the user stated."""
    return Priced(seconds, np.full(seconds.shape, STATED, dtype=np.int8))


def modelled(seconds: Seconds) -> Priced:
    """Seconds that follow from a fitted or composed formula."""
    return Priced(seconds, np.full(seconds.shape, MODELLED, dtype=np.int8))
