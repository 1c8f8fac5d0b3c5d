"""The makespan of a pipeline by replay of every rank's order (page, section 3.4).

Order: 1F1B and its interleaved form as in ``planner.memory.in_flight.rank_order``. Tasks are taken wave by wave, and
no wave needs a later one, so that nothing can block. Of one chunk a rank, the forward of micro-batch i on rank r is
in wave 2 i + r and its backward in wave 2 i + 2 p - 1 - r: each rank alternates as 1F1B does, and what a task waits for
is what its neighbour did one wave before. Of v chunks, the i-th forward of rank r is in forward wave i + r, its j-th
backward in backward wave j + p - 1 - r, and backward wave w follows forward wave w + v p - 1, which gives each rank the
2 (p - r - 1) + (v - 1) p forwards of its warm-up; there, too, only the wave before is waited for, around the ring of
ranks. So the ends of each rank's last tasks are all that later waves know, and where they have all moved by the same
time since an earlier wave, everything repeats: whole repetitions are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

ROUNDING = 2e-15
"""Of the clock: ends that moved by the same time may differ by so much. What drifts by less adds up, over k periods
walked and n skipped, to a share of 2e-15 min(k, n) of the makespan at the most."""

Ends = list[float]


def pipeline_s(
    forward_s: Sequence[float],
    backward_s: Sequence[float],
    *,
    num_stages: int,
    num_micro_batches: int,
    chunks_per_rank: int = 1,
) -> float:
    """Seconds from the first forward to the last backward.

    ``forward_s`` and ``backward_s`` are those of virtual stage chunk * num_stages + rank. More than one chunk a rank
    needs micro-batches in whole groups of ``num_stages``.
    """
    if chunks_per_rank == 1:
        return _plain(forward_s, backward_s, num_stages, num_micro_batches)
    return _interleaved(forward_s, backward_s, num_stages, num_micro_batches, chunks_per_rank)


class _Repetition:
    """Watches the ends from wave ``first`` to ``last``, where all ranks alternate and waves ``period`` apart are alike.

    The state it compares with is taken anew at distances that double, so that a repetition of any length is found.
    """

    def __init__(self, first: int, last: int, period: int) -> None:
        self.due: float = first if first <= last else inf
        self._last, self._period = last, period
        self._state: Ends = []
        self._wave = self._reach = 0

    def jump(self, wave: int, ranks: int, *ends: Ends) -> int:
        """Waves that may be skipped, their time added to all ``ends``; 0 where nothing repeats yet."""
        self.due = wave + self._period if wave + self._period <= self._last else inf
        state = [each for of_rank in ends for each in of_rank[:ranks]]
        if self._state:
            moved = state[0] - self._state[0]
            slack = ROUNDING * max(state)
            if all(abs(now - then - moved) <= slack for now, then in zip(state, self._state, strict=True)):
                self.due = inf
                waves = wave - self._wave
                times = (self._last - wave) // waves
                for of_rank in ends:
                    of_rank[:ranks] = [each + times * moved for each in of_rank[:ranks]]
                return times * waves
        if not self._state or wave - self._wave >= self._reach:
            self._reach = 2 * (wave - self._wave) if self._state else self._period
            self._state, self._wave = state, wave
        return 0


def _plain(forward_s: Sequence[float], backward_s: Sequence[float], p: int, m: int) -> float:
    # Of each rank the end of its last task, its last forward and its last backward. One rank more on either side, which
    # never runs, feeds the ends of the chain.
    end, forward_end, backward_end = [0.0] * p, [0.0] * (p + 1), [0.0] * (p + 1)
    repetition = _Repetition(2 * p - 1, 2 * m - 2, 2)
    wave = 0
    while wave < 2 * m + 2 * p - 2:
        if wave == repetition.due:
            wave += repetition.jump(wave, p, end, forward_end, backward_end)
        # Forwards: micro-batch (wave - r) / 2.
        for rank in range(max(wave & 1, wave - 2 * m + 2), min(p - 1, wave) + 1, 2):
            before, ready = end[rank], forward_end[rank - 1]
            end[rank] = forward_end[rank] = (before if before > ready else ready) + forward_s[rank]
        # Backwards: micro-batch (wave - 2 p + 1 + r) / 2.
        for rank in range(max(2 * p - 1 - wave, (wave & 1) ^ 1), min(p, 2 * m + 2 * p - 2 - wave), 2):
            before, ready = end[rank], backward_end[rank + 1]
            end[rank] = backward_end[rank] = (before if before > ready else ready) + backward_s[rank]
        wave += 1
    return max(end)


def _interleaved(forward_s: Sequence[float], backward_s: Sequence[float], p: int, m: int, v: int) -> float:
    tasks, ahead, period = m * v, v * p - 1, v * p
    waves = tasks + p - 1
    # By wave modulo the period: seconds on every rank, and whether the end of the chain is fed around.
    chunks = [[(wave - rank) % period // p for rank in range(p)] for wave in range(period)]
    forward_of = [[forward_s[chunk * p + rank] for rank, chunk in enumerate(row)] for row in chunks]
    forward_fed = [row[0] > 0 for row in chunks]
    chunks = [[v - 1 - (wave - p + 1 + rank) % period // p for rank in range(p)] for wave in range(period)]
    backward_of = [[backward_s[chunk * p + rank] for rank, chunk in enumerate(row)] for row in chunks]
    backward_fed = [row[p - 1] < v - 1 for row in chunks]
    # One rank more on either side holds what comes around.
    end, forward_end, backward_end = [0.0] * p, [0.0] * (p + 1), [0.0] * (p + 1)
    repetition = _Repetition(ahead + p - 1, tasks - 1, period)
    wave = 0
    while wave < waves + ahead:
        if wave == repetition.due:
            wave += repetition.jump(wave, p, end, forward_end, backward_end)
        if wave < waves:
            taken = forward_of[wave % period]
            forward_end[p] = forward_end[p - 1] if forward_fed[wave % period] else 0.0
            for rank in range(min(p - 1, wave), max(0, wave - tasks + 1) - 1, -1):
                before, ready = end[rank], forward_end[rank - 1]
                end[rank] = forward_end[rank] = (before if before > ready else ready) + taken[rank]
        back = wave - ahead
        if back >= 0:
            taken = backward_of[back % period]
            backward_end[p] = backward_end[0] if backward_fed[back % period] else 0.0
            for rank in range(max(0, p - 1 - back), min(p, tasks + p - 1 - back)):
                before, ready = end[rank], backward_end[rank + 1]
                end[rank] = backward_end[rank] = (before if before > ready else ready) + taken[rank]
        wave += 1
    return max(end)
