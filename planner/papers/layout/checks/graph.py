"""The task graph of a pipeline under its launcher's order: its longest path, and a walk of every rank (page, 3.4, 3.6).

A task is the forward or the backward of one micro-batch in one virtual stage. It waits for the task before it on its
rank and for the stage that feeds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_ENDS = 6_000_000
"""Ends of tasks that are held at once."""


class Shape(NamedTuple):
    """Ranks, chunks on each, micro-batches."""

    pp: int
    vpp: int
    num_micro_batches: int

    @property
    def tasks(self) -> int:
        """Of the whole pipeline."""
        return 2 * self.pp * self.vpp * self.num_micro_batches


@dataclass(frozen=True)
class Graph:
    """All tasks. ``kind``: the virtual stage of a forward, p·v more of a backward.

    ``kind_by_rank`` is in the order in which ranks run, (p, 2·m·v). All else is level by level, level l from
    ``starts[l]`` on: the places of what a task waits for, of which none is at or behind the start of its own level
    where ``ascends`` holds, or the number of tasks for none.
    """

    shape: Shape
    kind_by_rank: npt.NDArray[np.int16]
    kind: npt.NDArray[np.int16]
    before: npt.NDArray[np.int32]
    feed: npt.NDArray[np.int32]
    starts: list[int]
    ascends: bool

    def longest_paths(self, forward_s: Floats, backward_s: Floats) -> list[float]:
        """Seconds from the first task to the end of the last, of every column of times by virtual stage."""
        if self.shape.pp == self.shape.vpp == 1:
            # One stage runs forward and backward in turn: a path of all tasks.
            return [float(one) for one in self.shape.num_micro_batches * (forward_s + backward_s)[0]]
        width = forward_s.shape[1]
        together = max(1, MOST_ENDS // self.shape.tasks)
        found: list[float] = []
        for first in range(0, width, together):
            part = slice(first, first + together)
            found += self._ended(np.concatenate([forward_s[:, part], backward_s[:, part]]))
        return found

    def _ended(self, lasting: Floats) -> list[float]:
        if not self.ascends:
            return [np.inf] * lasting.shape[1]
        end = np.empty((self.shape.tasks + 1, lasting.shape[1]))
        end[-1] = 0.0
        self.run(end, lasting[self.kind], 0, len(self.starts) - 1)
        return [float(one) for one in end.max(axis=0)]

    def run(self, end: Floats, seconds: Floats, level: int, stop: int) -> None:
        """Fills in the ``end`` of all tasks [task, column] from a level to before another, from those before.

        The last row of ``end`` is when what waits for nothing may begin; ``seconds`` are those of tasks.
        """
        first = self.starts[level]
        for last in self.starts[level + 1 : stop + 1]:
            done = end.take(self.before[first:last], axis=0)
            np.maximum(done, end.take(self.feed[first:last], axis=0), out=done)
            np.add(done, seconds[first:last], out=end[first:last])
            first = last

    def peaks(self, stored_bytes: Floats) -> Floats:
        """The most that each rank holds, (p,): +stored at a forward, −stored at its backward, all of it walked."""
        moved = np.concatenate([stored_bytes, -stored_bytes])[self.kind_by_rank]
        return np.asarray(np.cumsum(moved, axis=1, out=moved).max(axis=1))


def graph_of(shape: Shape) -> Graph:
    """The launcher's order (page, section 3.4) and the edges between ranks.

    Levels come from a formula, and every edge is looked at: that the graph has no cycle is seen, not supposed.
    """
    p, v, m = shape
    stage, batch = np.arange(p * v, dtype=np.int32)[:, None], np.arange(m, dtype=np.int32)[None, :]
    rank, chunk = stage % p, stage // p
    ahead = batch // p * (p * v) + batch % p
    i, j = ahead + chunk * p, ahead + (v - 1 - chunk) * p
    if v == 1:
        warm_up = np.minimum(m, p - 1 - rank)
        forward_level, backward_level = 2 * i + rank, 2 * j + 2 * p - 1 - rank
    else:
        warm_up = np.minimum(m * v, 2 * (p - 1 - rank) + (v - 1) * p)
        forward_level, backward_level = 2 * (i + rank), 2 * (j + p - 1 - rank + v * p - 1) + 1
    per_rank = 2 * m * v
    forward = rank * per_rank + np.where(i < warm_up, i, 2 * i - warm_up)
    backward = rank * per_rank + np.where(j < m * v - warm_up, warm_up + 2 * j + 1, m * v + j)

    kind, level = np.empty(shape.tasks, dtype=np.int16), np.empty(shape.tasks, dtype=np.int32)
    kind[forward], kind[backward] = stage, stage + p * v
    level[forward], level[backward] = forward_level, backward_level
    feed = np.empty(shape.tasks, dtype=np.int32)
    feed[forward[0]], feed[forward[1:]] = shape.tasks, forward[:-1]
    feed[backward[-1]], feed[backward[:-1]] = forward[-1], backward[1:]
    before = np.arange(-1, shape.tasks - 1, dtype=np.int32)
    before[::per_rank] = shape.tasks

    by_level = np.argsort(level, kind="stable")
    place = np.empty(shape.tasks + 1, dtype=np.int32)
    place[by_level], place[-1] = np.arange(shape.tasks), shape.tasks
    level_or_none = np.append(level, -1)
    return Graph(
        shape=shape,
        kind_by_rank=kind.reshape(p, per_rank),
        kind=kind[by_level],
        before=place[before[by_level]],
        feed=place[feed[by_level]],
        starts=[0, *(np.flatnonzero(np.diff(level[by_level])) + 1).tolist(), shape.tasks],
        ascends=bool((level_or_none[before] < level).all() and (level_or_none[feed] < level).all()),
    )
