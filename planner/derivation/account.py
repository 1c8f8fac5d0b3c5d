"""Seconds by where they come from: the account behind prices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from planner.attribution import Sources
from profiles.priced import SOURCES

Floats = npt.NDArray[np.float64]
Error = tuple[float, float]
"""Median and p90 of a relative error."""


@dataclass
class Account:
    """Seconds of every price of an array, by source and by family."""

    shape: tuple[int, ...]
    by_source: Floats = field(init=False)
    by_family: dict[str, Floats] = field(init=False)

    def __post_init__(self) -> None:
        self.by_source = np.zeros((len(SOURCES), *self.shape))
        self.by_family = defaultdict(lambda: np.zeros(self.shape))

    def add(self, family: str, seconds: Floats, source: npt.NDArray[np.int8] | int) -> None:
        """Add seconds (broadcast to the shape); ``source`` is an index into SOURCES, for all or for each."""
        seconds = np.broadcast_to(seconds, self.shape)
        self.by_family[family] += seconds
        if isinstance(source, int):
            self.by_source[source] += seconds
        else:
            where = np.broadcast_to(source, self.shape)
            for index in range(len(SOURCES)):
                self.by_source[index] += np.where(where == index, seconds, 0.0)

    @property
    def seconds(self) -> Floats:
        """All seconds of each price."""
        return np.asarray(self.by_source.sum(axis=0))

    def shares(self) -> Floats:
        """Shares of each price by source, to six digits, the largest taking the rounding; sources last."""
        return rounded_shares(np.moveaxis(self.by_source / self.seconds, 0, -1))


def rounded_shares(shares: Floats) -> Floats:
    """Shares that sum to 1 along the last axis, to six digits, the largest taking the rounding."""
    rounded = np.round(shares, 6)
    largest = shares.argmax(axis=-1)[..., None]
    rest = rounded.sum(axis=-1, keepdims=True) - np.take_along_axis(rounded, largest, axis=-1)
    np.put_along_axis(rounded, largest, np.round(1.0 - rest, 6), axis=-1)
    return np.asarray(rounded)


def sources_of(shares: Sequence[float]) -> Sources:
    """Rounded shares, in the order of SOURCES, as a document."""
    measured, interpolated, modelled, stated = shares
    return Sources.model_construct(measured=measured, interpolated=interpolated, modelled=modelled, stated=stated)


def nine_digits(seconds: Floats) -> list[float]:
    """Prices as files hold them: the last bits of a logarithm differ between processors, nine digits do not."""
    return [float(f"{value:.8e}") for value in seconds.tolist()]


def weighted_error(times: Mapping[str, float], errors: Mapping[str, Error | None]) -> dict[str, float] | None:
    """Errors of families weighted by their time: the profile's own leave-one-out error of a whole plan.

    None if a family that carries at least 1 % of the time has no stored error.
    """
    total = sum(times.values())
    if any(errors[name] is None and times[name] >= 0.01 * total for name in times):
        return None
    known = {name: error for name, error in errors.items() if error is not None and name in times}
    covered = sum(times[name] for name in known)
    if not covered:
        return None
    median = sum(times[name] * error[0] for name, error in known.items()) / covered
    p90 = sum(times[name] * error[1] for name, error in known.items()) / covered
    return {"median": float(f"{median:.4g}"), "p90": float(f"{p90:.4g}")}
