"""Seconds by where they come from: the account behind an option's price."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from profiles.priced import SOURCES
from profiles.profile import Profile

Floats = npt.NDArray[np.float64]


@dataclass
class Account:
    """Seconds per option, by source and by family."""

    shape: tuple[int, int]
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
        """All seconds of each option."""
        return np.asarray(self.by_source.sum(axis=0))


def cost_error(account: Account, weights: Floats, profile: Profile, dtype: str) -> dict[str, float] | None:
    """The profile's own leave-one-out error over the families used, weighted by time. ``weights``: of ``shape``.

    None if a family that carries at least 1 % of the time has no stored error. Launch time is stated and has none.
    """
    names = sorted(set(account.by_family) - {"launch"})
    times = {name: float((account.by_family[name] * weights).sum()) for name in names}
    errors = {name: profile.cost_error("all_gather" if name == "ring" else name, dtype) for name in names}
    total = sum(times.values())
    if any(errors[name] is None and times[name] >= 0.01 * total for name in names):
        return None
    known = {name: error for name, error in errors.items() if error is not None}
    covered = sum(times[name] for name in known)
    if not covered:
        return None
    median = sum(times[name] * error[0] for name, error in known.items()) / covered
    p90 = sum(times[name] * error[1] for name, error in known.items()) / covered
    return {"median": float(f"{median:.4g}"), "p90": float(f"{p90:.4g}")}
