"""The last per mille: exchange whole sequences between two ranks so that the slower of them finishes earlier."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from planner.papers.zellige.fillers import Floats
from planner.papers.zellige.instance import Instance

REACH = 3
"""At most so many sequences of one kind change hands in one exchange."""
EXCHANGES = 3000
"""Exchanges considered for one pair of ranks; kinds are taken in, smallest first, while they stay below."""
GAIN = 3e-5
"""Relative distance from the mean at which balancing stops paying."""
PARTNERS = 6
"""Partner ranks tried before the fullest rank counts as stuck."""

_Menu = tuple[Floats, npt.NDArray[np.int64]]
"""Seconds moved, ascending, and beside each how many of every kind move from the full rank to the empty one."""


def balance_pairs(
    instance: Instance, whole_counts: Mapping[int, list[int]], ledger: Floats, bound_s: float, *, rounds: int
) -> None:
    """Move whole sequences (``whole_counts[kind][rank]``) in place to lower the makespan, pair by pair.

    The fullest rank gives to one of the emptiest, and takes back.

    Stops when the fullest rank cannot be relieved, at the bound, or after ``rounds``.
    """
    kinds = sorted(whole_counts, key=lambda index: instance.kinds[index].whole_s)
    modes = [mode for index in kinds if (mode := instance.kinds[index].whole) is not None]
    pairs = _Pairs(
        [whole_counts[index] for index in kinds],
        [mode.time_s for mode in modes],
        [mode.memory_bytes for mode in modes],
        ledger,
        instance.memory_cap_bytes,
    )
    # Exchanges leave the mean as it is: a hair above it there is nothing left to gain.
    floor_s = max(bound_s, float(ledger[0].mean()) * (1 + GAIN))
    for _ in range(rounds if kinds else 0):
        fullest = int(ledger[0].argmax())
        if ledger[0, fullest] <= floor_s:
            break
        emptiest = ledger[0].argsort(kind="stable")[:PARTNERS]
        if not any(pairs.relieve(fullest, int(partner)) for partner in emptiest):
            break


class _Pairs:
    """Whole sequences per kind and rank, with the menus of exchanges seen so far."""

    def __init__(
        self, counts: list[list[int]], times: list[float], memories: list[float], ledger: Floats, cap_bytes: float
    ) -> None:
        self.counts = counts
        self.times = times
        self.memories = memories
        self.ledger = ledger
        self.cap_bytes = cap_bytes
        self.menus: dict[tuple[tuple[int, int, int], ...], _Menu] = {}

    def relieve(self, full: int, empty: int) -> bool:
        """Make the exchange that leaves the later of the two ranks earliest. False if none helps."""
        difference = float(self.ledger[0, full] - self.ledger[0, empty])
        if difference <= 1e-9 * float(self.ledger[0, full]):
            return False
        offers = self._offers(full, empty)
        if not offers:
            return False
        menu = self.menus.get(offers)
        if menu is None:
            menu = self.menus[offers] = self._menu(offers)
        moved, exchanges = menu
        # The best exchange moves half the difference; the nearest on either side that memory admits is taken.
        least = difference * 1e-6
        first, last = (int(end) for end in moved.searchsorted((least, difference - least)))
        high = int(moved.searchsorted(difference / 2))
        low = high - 1
        while low >= first or high < last:
            take_low = high >= last or (low >= first and difference / 2 - moved[low] <= moved[high] - difference / 2)
            position = low if take_low else high
            if self._admit(offers, exchanges[position].tolist(), full, empty):
                return True
            low, high = (low - 1, high) if take_low else (low, high + 1)
        return False

    def _offers(self, full: int, empty: int) -> tuple[tuple[int, int, int], ...]:
        """(kind, most taken back, most given) for the kinds of the two ranks, smallest first, within EXCHANGES."""
        offers = []
        size = 1
        for kind, row in enumerate(self.counts):
            given, taken = min(row[full], REACH), min(row[empty], REACH)
            if given or taken:
                size *= given + taken + 1
                if size > EXCHANGES:
                    break
                offers.append((kind, taken, given))
        return tuple(offers)

    def _menu(self, offers: tuple[tuple[int, int, int], ...]) -> _Menu:
        grid = np.meshgrid(*(np.arange(-taken, given + 1) for _, taken, given in offers), indexing="ij")
        exchanges = np.stack([axis.ravel() for axis in grid], axis=1)
        # Summed term by term: a matrix product rounds differently from one processor to the next.
        seconds: Floats = np.zeros(len(exchanges))
        for (kind, _, _), axis in zip(offers, grid, strict=True):
            seconds += axis.ravel() * self.times[kind]
        order = seconds.argsort(kind="stable")
        return seconds[order], exchanges[order]

    def _admit(self, offers: tuple[tuple[int, int, int], ...], exchange: list[int], full: int, empty: int) -> bool:
        kinds = [kind for kind, _, _ in offers]
        memory = sum(count * self.memories[kind] for kind, count in zip(kinds, exchange, strict=True))
        ledger = self.ledger
        if ledger[1, empty] + memory > self.cap_bytes or ledger[1, full] - memory > self.cap_bytes:
            return False
        moved = sum(count * self.times[kind] for kind, count in zip(kinds, exchange, strict=True))
        for kind, count in zip(kinds, exchange, strict=True):
            self.counts[kind][full] -= count
            self.counts[kind][empty] += count
        ledger[:, full] -= (moved, memory)
        ledger[:, empty] += (moved, memory)
        return True
