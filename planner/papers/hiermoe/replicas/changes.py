"""Which changes may lower a peak: two slots swap experts, or a copy gives its slot to another expert.

Only what holds tokens of a peak entry, or load of a peak rank, can lower it, so changes are looked for there, in the
order of what they would do to that peak if all tokens kept their copies. What they really do is a trial's to say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.instance import Case
from planner.papers.hiermoe.replicas.state import Changes, State

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SWAPS = 6
"""Swaps that one peak proposes."""
PICKS = 2
"""Experts, and slots for each, that one peak proposes for another copy."""


@dataclass(frozen=True, eq=False)
class Board:
    """The placement as the proposals need it: who is on which rank, and which slots hold one copy of several."""

    table: Ints
    rank: Ints
    on_rank: NDArray[np.bool_]
    spare: NDArray[np.bool_]
    slot_load: Floats
    rank_load: Floats

    @classmethod
    def of(cls, case: Case, state: State) -> Board:
        """A state's board. Where the problem allows copies to share a rank, no expert is in the way."""
        rank = np.arange(case.P) // case.slots
        on_rank = np.zeros((case.G, case.E), dtype=bool)
        if case.problem.forbid_same_rank_replicas:
            on_rank[rank, state.table] = True
        spare = np.bincount(state.table, minlength=case.E)[state.table] > 1
        return cls(state.table, rank, on_rank, spare, state.slot_load(), state.load)

    def may_swap(self, ones: Ints, others: Ints) -> NDArray[np.bool_]:
        """[ones, others]: whether the two slots, of different ranks and experts, may exchange what they hold."""
        one, other = self.table[ones], self.table[others]
        crowds = self.on_rank[self.rank[ones]][:, other] | self.on_rank[self.rank[others]][:, one].T
        same = (self.rank[ones][:, None] == self.rank[others]) | (one[:, None] == other)
        free: NDArray[np.bool_] = ~crowds & ~same
        return free

    def may_take(self, slot: int, expert: int) -> bool:
        """Whether a slot that holds one copy of several may give it up for another expert."""
        other = expert != self.table[slot]
        return bool(self.spare[slot] and other and not self.on_rank[self.rank[slot], expert])


def at_entry(case: Case, state: State, board: Board, hop: int, entry: int) -> list[Changes]:
    """Changes that may lower one (group, holder) count of a hop."""
    group, holder = divmod(entry, state.counts[hop].shape[1])
    alone, absent = state.at_peak(hop, group, holder)
    size = case.P // state.hops[hop].groups
    inside = np.arange(group * size, (group + 1) * size)
    outside = np.setdiff1d(np.arange(case.P), inside)
    change = absent[outside] - alone[inside][:, None]
    found = _best_swaps(board, inside, outside, change)
    heavy = inside[np.argsort(-alone[inside], kind="stable")]
    light = outside[np.argsort(board.rank_load[board.rank[outside]], kind="stable")]
    found += _copies_elsewhere(board, heavy, light)
    return found + _given_up(case, board, heavy)


def at_rank(case: Case, board: Board, rank: int) -> list[Changes]:
    """Changes that may lower the load of one rank."""
    inside = np.arange(rank * case.slots, (rank + 1) * case.slots)
    outside = np.setdiff1d(np.arange(case.P), inside)
    given = board.slot_load[inside][:, None] - board.slot_load[outside]
    after = np.maximum(board.rank_load[rank] - given, board.rank_load[board.rank[outside]] + given)
    found = _best_swaps(board, inside, outside, after - board.rank_load[rank])
    heavy = inside[np.argsort(-board.slot_load[inside], kind="stable")]
    light = outside[np.argsort((board.rank_load[board.rank] - board.slot_load)[outside], kind="stable")]
    found += _copies_elsewhere(board, heavy, light)
    return found + _given_up(case, board, heavy)


def every(case: Case, board: Board) -> list[Changes]:
    """All changes there are."""
    table, slots = board.table, np.arange(case.P)
    swaps = zip(*np.nonzero(np.triu(board.may_swap(slots, slots))), strict=True)
    found: list[Changes] = [((int(p), int(table[q])), (int(q), int(table[p]))) for p, q in swaps]
    takes = ((slot, expert) for slot in np.flatnonzero(board.spare).tolist() for expert in range(case.E))
    return found + [((slot, expert),) for slot, expert in takes if board.may_take(slot, expert)]


def _best_swaps(board: Board, ones: Ints, others: Ints, change: Floats) -> list[Changes]:
    """The swaps that lower the peak most, lower slots first among equals."""
    change = np.where(board.may_swap(ones, others), change, np.inf)
    order = np.argsort(change, axis=None, kind="stable")[:SWAPS]
    table = board.table
    found: list[Changes] = []
    for one, other in zip(*np.unravel_index(order, change.shape), strict=True):
        if change[one, other] < 0:
            p, q = int(ones[one]), int(others[other])
            found.append(((p, int(table[q])), (q, int(table[p]))))
    return found


def _copies_elsewhere(board: Board, heavy: Ints, light: Ints) -> list[Changes]:
    """One more copy, elsewhere, of what weighs most here, in place of a copy that can be spared."""
    found: list[Changes] = []
    for expert in dict.fromkeys(board.table[heavy[: 2 * PICKS]].tolist()):
        slots = (int(slot) for slot in light if board.may_take(int(slot), expert))
        found += [((slot, expert),) for slot, _ in zip(slots, range(PICKS), strict=False)]
    return found


def _given_up(case: Case, board: Board, heavy: Ints) -> list[Changes]:
    """Copies here that can be spared, in favour of the experts with most and with least load per copy."""
    per_copy = np.bincount(board.table, weights=board.slot_load, minlength=case.E) / np.bincount(
        board.table, minlength=case.E
    )
    order = np.argsort(-per_copy, kind="stable")
    found: list[Changes] = []
    for slot in heavy[board.spare[heavy]][:PICKS].tolist():
        for ranked in (order, order[::-1]):
            experts = (int(expert) for expert in ranked if board.may_take(slot, int(expert)))
            found += [((slot, expert),) for expert, _ in zip(experts, range(PICKS), strict=False)]
    return found
