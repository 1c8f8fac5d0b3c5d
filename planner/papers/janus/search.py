"""The cheapest pools that carry a demand, by the tie rule, and those next to them (page, "Algorithm")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.papers.janus import model
from planner.papers.janus.frontier import Family, family, frontier, operating_batches
from planner.papers.janus.model import Bools, Floats, Ints, Option

TIE = 1e-9
"""Objectives or seconds this close, relatively, are equal."""
TOGETHER = 2**20
"""Pools looked at together: what bounds the memory of a search."""
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Choice:
    """Pools that carry a demand: what they cost, and their operating point."""

    option: Option
    n_a: int
    n_e: int
    objective: float
    batch: float
    tpot_s: float


def cheapest(options: Sequence[Option], demands: Sequence[float], count: int = 1) -> list[list[Choice]]:
    """For each demand up to ``count`` pools that carry it, the best by the tie rule first; none where none does.

    Smallest objective, then total, then TPOT, then n_a, then device id, each over what the one before leaves; the
    second is the best without the first, and so on.
    """
    width = max(1, count * sum(option.limits.max_expert_instances for option in options))
    size = max(1, TOGETHER // width)
    found: list[list[Choice]] = []
    for start in range(0, len(demands), size):
        some = np.array(demands[start : start + size], dtype=np.float64)
        found += Candidates.of(options, some, count).picked(count)
    return found


@dataclass(frozen=True)
class Candidates:
    """Pools by demand, option by option: ``n_a`` [D, N] is 0 where there is none; the rest is of each place [N]."""

    options: Sequence[Option]
    demands: Floats
    which: Ints
    n_e: Ints
    n_a: Ints
    objective: Floats

    @classmethod
    def of(cls, options: Sequence[Option], demands: Floats, count: int) -> Candidates:
        """Of every n_e the ``count`` fewest n_a: one more only costs more, so the best ``count`` are among them."""
        families = [family(option) for option in options]
        first = cls._of_families(options, [pools.sample() for pools in families], demands, count)
        # So much the best ``count`` cost at most.
        most = np.sort(first.objective, axis=1)[:, count - 1 : count]
        cost = most[:, 0] if most.size else np.full(len(demands), np.inf)
        return cls._of_families(options, families, demands, count, cost)

    @classmethod
    def _of_families(
        cls,
        options: Sequence[Option],
        families: Sequence[Family],
        demands: Floats,
        count: int,
        cost: Floats | None = None,
    ) -> Candidates:
        edges = [frontier(pools, demands, cost) for pools in families]
        n_a = [edge.choices(count).reshape(len(demands), -1) for edge in edges]
        return cls.from_pools(options, demands, n_a, [np.repeat(edge.family.n_e, count) for edge in edges])

    @classmethod
    def from_pools(
        cls, options: Sequence[Option], demands: Floats, n_a: Sequence[Ints], n_e: Sequence[Ints]
    ) -> Candidates:
        """From n_a [D, N of the option] and n_e [N of the option], option by option."""
        objective = [
            np.where(some > 0, option.objective(some, experts), np.inf)
            for option, some, experts in zip(options, n_a, n_e, strict=True)
        ]
        which = np.repeat(np.arange(len(options)), [len(experts) for experts in n_e])
        return cls(
            options, demands, which, np.concatenate(n_e), np.concatenate(n_a, axis=1), np.concatenate(objective, axis=1)
        )

    def picked(self, count: int) -> list[list[Choice]]:
        """The best of each demand, then the best of the rest, ``count`` times. Takes them out of ``objective``."""
        batch = np.full(self.n_a.shape, np.nan)
        tpot = np.full(self.n_a.shape, np.inf)
        found: list[list[Choice]] = [[] for _ in self.demands]
        if not self.n_a.shape[1]:
            return found
        rows = np.arange(len(self.demands))
        for _ in range(count):
            tied = self._least_total()
            self._measure(tied & np.isnan(batch), batch, tpot)
            tied = _least(np.where(tied, tpot, np.inf))
            n_a = np.where(tied, self.n_a, NEVER)
            places = n_a.argmin(axis=1)
            for row, place in zip(rows[tied[rows, places]], places[tied[rows, places]], strict=True):
                found[row].append(self._choice(row, place, batch, tpot))
            self.objective[rows, places] = np.inf
        return found

    def _least_total(self) -> Bools:
        """Of each demand the pools of least objective, and of these those of least total [D, N]."""
        tied = _least(self.objective)
        total = np.where(tied, self.n_a + self.n_e, NEVER)
        return np.asarray(tied & (total == total.min(axis=1, keepdims=True)))

    def _measure(self, chosen: Bools, batch: Floats, tpot: Floats) -> None:
        """Batch and TPOT of the chosen ones, written into the arrays [D, N]."""
        row, place = np.nonzero(chosen)
        for index, option in enumerate(self.options):
            mine = self.which[place] == index
            if not mine.any():
                continue
            at = row[mine], place[mine]
            pairs = model.pairs_of(option, self.n_a[at], self.n_e[at[1]])
            batch[at] = operating_batches(pairs, self.demands[at[0]])
            # Rounding alone can leave one without a batch, where it is at the very limit.
            tpot[at] = np.where(np.isnan(batch[at]), np.inf, model.tpot_s(pairs, batch[at]))

    def _choice(self, row: int, place: int, batch: Floats, tpot: Floats) -> Choice:
        return Choice(
            self.options[self.which[place]],
            int(self.n_a[row, place]),
            int(self.n_e[place]),
            float(self.objective[row, place]),
            float(batch[row, place]),
            float(tpot[row, place]),
        )


def _least(amounts: Floats) -> Bools:
    """Those within a tie of the least of each row; none of a row that is all infinite."""
    least = amounts.min(axis=1, keepdims=True)
    return np.asarray(np.isfinite(amounts) & (amounts <= least * (1 + TIE)))
