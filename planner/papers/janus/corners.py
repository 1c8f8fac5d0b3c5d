"""Pools that miss one thing alone: whichever miss it least, by the SLO and by memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.papers.janus import fixed_point, model
from planner.papers.janus.frontier import family, fits, longest_s
from planner.papers.janus.model import Option


@dataclass(frozen=True)
class Broken:
    """Pools that break one thing alone, and what it would have to be."""

    code: str
    field: str
    required: float
    available: float
    unit: str
    option: Option
    n_a: int
    n_e: int
    batch: float

    @property
    def ratio(self) -> float:
        """How much more than there is."""
        return self.required / self.available


@dataclass(frozen=True)
class Corners:
    """Of an option the pools with one step of attention instances and with the most of them, for each n_e.

    TPOT and memory never rise from the second step on (`frontier`), so where any pools break one thing alone, those
    that break it least are among these. ``batch`` is NaN past the data.
    """

    pairs: model.Pairs
    batch: model.Floats

    @classmethod
    def of(cls, option: Option, demand: float) -> Corners:
        """Of all pools of an option that limits and launcher rules allow."""
        pools = family(option)
        pairs = model.pairs_of(option, np.append(pools.step, pools.most * pools.step), np.tile(pools.n_e, 2))
        return cls(pairs, fixed_point.batches(pairs, demand))

    def nearest(self) -> list[Broken]:
        """Of the pools that miss the SLO alone the fastest, and of those that miss memory alone the smallest."""
        option = self.pairs.option
        met = ~np.isnan(self.batch)
        batch = np.where(met, self.batch, 1.0)
        tpot = model.tpot_s(self.pairs, batch)
        room, soon = fits(self.pairs, batch), tpot <= longest_s(option)
        found = []
        if (late := met & room & ~soon).any():
            place = int(np.where(late, tpot, np.inf).argmin())
            found.append(self._broken("tpot_slo", "slo_tpot_s", float(tpot[place]), option.slo_s, "s", place))
        if option.memory is not None and (full := met & soon & ~room).any():
            used = np.where(full, model.attention_bytes(self.pairs, batch), np.inf)
            place, field = int(used.argmin()), f"{option.memory_place}.capacity_bytes"
            capacity = option.memory.capacity_bytes
            found.append(self._broken("attention_memory", field, float(used[place]), capacity, "bytes", place))
        return found

    def _broken(self, code: str, field: str, required: float, available: float, unit: str, place: int) -> Broken:
        n_a, n_e, batch = self.pairs.n_a[place], self.pairs.n_e[place], self.batch[place]
        return Broken(code, field, required, available, unit, self.pairs.option, int(n_a), int(n_e), float(batch))
