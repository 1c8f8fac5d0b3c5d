"""Exact event replay: chunked tasks on named resources, each served in a fixed order, for many candidates at once.

A ``Run`` is a number of equal chunks that follow each other on one resource. Every task starts as early as the order
of its resource and what it waits for allow. Nothing here knows what the tasks are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


FEW = 4
"""Candidates so few are replayed one by one."""


class Run(NamedTuple):
    """Chunks of one ``kind`` on one ``resource``; runs of a resource are served in the order of their list.

    Its first chunk waits for all of the runs ``after``, its chunk j for chunk j of the run ``feed``, which has as many
    chunks. Both are earlier places in the list.
    """

    kind: int
    resource: int
    after: tuple[int, ...] = ()
    feed: int | None = None


@dataclass(frozen=True)
class Pipeline:
    """Runs in an order in which everything waited for comes before."""

    runs: tuple[Run, ...]

    def makespan(self, seconds: Sequence[Floats], chunks: Sequence[Ints | int]) -> Floats:
        """The end of the last task [s], for every candidate.

        ``seconds[kind]`` is one chunk's time, ``chunks[kind]`` how many a run has; arrays of one shape, or 1 for all.

        Chunk ends of a run are convex in the chunk's number if those that feed it are: then no chunk between the first
        and the last decides when the next run's last one ends. So two numbers a run are all of it, however many chunks
        it has: first = max(free, waited for, feed's first) + d, last = max(first + (n - 1) d, feed's last + d).
        """
        shape = np.broadcast_shapes(*(np.shape(values) for values in (*seconds, *chunks)))
        rest = [(np.asarray(n) - 1) * d for n, d in zip(chunks, seconds, strict=True)]
        many = [not isinstance(n, int) or n > 1 for n in chunks]
        if len(shape) == 1 and shape[0] <= FEW:
            # Plain floats are five times as fast as arrays of one.
            columns = [[np.broadcast_to(v, shape).tolist() for v in values] for values in (seconds, rest)]
            each = zip(zip(*columns[0], strict=True), zip(*columns[1], strict=True), strict=True)
            return np.array([self._ends(durations, more, many, max) for durations, more in each])
        return np.asarray(np.broadcast_to(self._ends(seconds, rest, many, np.maximum), shape))

    def _ends(
        self, seconds: Sequence[Any], rest: Sequence[Any], many: Sequence[bool], later: Callable[..., Any]
    ) -> Any:
        """The last end over all resources; of floats with ``max``, of arrays with ``np.maximum``."""
        first: list[Any] = [None] * len(self.runs)
        last: list[Any] = [None] * len(self.runs)
        free: dict[int, Any] = {}
        for place, (run, forgotten) in enumerate(zip(self.runs, self._forgotten, strict=True)):
            duration = seconds[run.kind]
            ready = free.get(run.resource, 0.0)
            for before in run.after:
                ready = later(ready, last[before])
            if run.feed is not None:
                ready = later(ready, first[run.feed])
            end = first[place] = ready + duration
            if many[run.kind]:
                end = end + rest[run.kind]
                if run.feed is not None:
                    end = later(end, last[run.feed] + duration)
            last[place] = free[run.resource] = end
            for done in forgotten:
                first[done] = last[done] = None
        return reduce(later, free.values())

    @cached_property
    def _forgotten(self) -> list[list[int]]:
        """For each run, the ones whose ends nothing after it asks for: they need not be kept."""
        last_use = list(range(len(self.runs)))
        for place, run in enumerate(self.runs):
            for before in run.after:
                last_use[before] = place
            if run.feed is not None:
                last_use[run.feed] = place
        forgotten: list[list[int]] = [[] for _ in self.runs]
        for place, user in enumerate(last_use):
            forgotten[user].append(place)
        return forgotten

    def starts(self, seconds: Sequence[float], chunks: Sequence[int]) -> list[Floats]:
        """The start of every chunk [s] of one candidate, run by run; chunk by chunk, without the rule of `makespan`."""
        ahead = [duration * np.arange(number) for duration, number in zip(seconds, chunks, strict=True)]
        begun: list[Floats] = []
        ends: list[float] = []
        free: dict[int, float] = {}
        for run in self.runs:
            duration = seconds[run.kind]
            ready = free.get(run.resource, 0.0)
            for before in run.after:
                ready = max(ready, ends[before])
            if run.feed is None:
                begin = ready + ahead[run.kind]
            else:
                fed = np.maximum(begun[run.feed] + seconds[self.runs[run.feed].kind], ready)
                # start(j) = max(fed(j), start(j - 1) + d): a running maximum once j d is taken off.
                begin = np.maximum.accumulate(fed - ahead[run.kind]) + ahead[run.kind]
            begun.append(np.asarray(begin))
            end = float(begin[-1]) + duration
            ends.append(end)
            free[run.resource] = end
        return begun
