"""Longest paths of pipelines of many micro-batches: the graph of a few, and what one period more does to it.

Max-plus algebra: of one period, the ends that later tasks wait for are a matrix of longest paths "times" those of the
period before. That two periods in a row are alike, task by task and edge by edge, is looked at; a longer pipeline has
more of them (the order of section 3.4 depends on nothing but the place within a period).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.papers.layout.checks.graph import MOST_ENDS, Floats, Graph, Ints, Shape, graph_of

STEP_COST = 4_000
"""Sums of two numbers that take as long as one level of a graph."""


@dataclass(frozen=True)
class Repeated:
    """A pipeline as a short one, ``graph``, with ``more`` periods behind level ``level``, each of ``levels`` of them.

    ``entering`` and ``leaving`` are the places of tasks that later ones wait for, before and after the period.
    """

    shape: Shape
    graph: Graph
    more: int
    level: int
    levels: int
    entering: Ints
    leaving: Ints

    def longest_paths(self, forward_s: Floats, backward_s: Floats) -> list[float]:
        """As ``Graph.longest_paths``."""
        lasting = np.concatenate([forward_s, backward_s])
        together = max(1, MOST_ENDS // self.graph.shape.tasks)
        found: list[float] = []
        for first in range(0, lasting.shape[1], together):
            found += self._ended(lasting[:, first : first + together])
        return found

    def peaks(self, stored_bytes: Floats) -> Floats:
        """As ``Graph.peaks``: whatever a period stores it frees again, so one more holds no more."""
        return self.graph.peaks(stored_bytes)

    def _ended(self, lasting: Floats) -> list[float]:
        graph, last = self.graph, len(self.graph.starts) - 1
        seconds = lasting[graph.kind]
        end = np.zeros((graph.shape.tasks + 1, lasting.shape[1]))
        graph.run(end, seconds, 0, self.level)
        waited = end[self.entering]
        if len(waited) ** 3 * self.more.bit_length() * lasting.shape[1] < STEP_COST * self.more * self.levels:
            waited = np.stack([self._later(seconds[:, [at]], waited[:, at]) for at in range(lasting.shape[1])], axis=1)
        else:
            for _ in range(self.more):
                waited = self._after(end, seconds, waited)
        end[:-1] = 0.0
        end[self.leaving] = self._after(end, seconds, waited)
        graph.run(end, seconds, self.level + self.levels, last)
        return [float(one) for one in end.max(axis=0)]

    def _after(self, end: Floats, seconds: Floats, waited: Floats) -> Floats:
        """What is waited for after one period, [task, column], from what was before it."""
        end[self.entering] = waited
        self.graph.run(end, seconds, self.level, self.level + self.levels)
        return np.asarray(end[self.leaving])

    def _later(self, seconds: Floats, waited: Floats) -> Floats:
        """After all the other periods, by squaring the matrix of one: [after, before], longest paths or -inf."""
        count = len(waited)
        end = np.full((self.graph.shape.tasks + 1, count), -np.inf)
        paths = self._after(end, seconds, np.where(np.eye(count, dtype=bool), 0.0, -np.inf))
        left = self.more
        while left:
            if left & 1:
                waited = (paths + waited).max(axis=1)
            left >>= 1
            if left:
                paths = _product(paths, paths)
        return waited


Pipeline = Graph | Repeated


def pipeline_of(shape: Shape) -> Pipeline:
    """The graph of all tasks, or, of many micro-batches, of a few and the period that repeats."""
    p, v, m = shape
    # Micro-batches in a period; and as many as hold the warm-up, two periods and the drain.
    group, few = (1, p + 4) if v == 1 else (p, 4 * p)
    if m <= 2 * few or m % group:
        return graph_of(shape)
    graph = graph_of(Shape(p, v, few))
    levels = 2 * v * group
    level = _first_alike(graph, levels)
    if not graph.ascends or level is None:
        return graph_of(shape)
    entering, leaving = _waited(graph, level), _waited(graph, level + levels)
    return Repeated(shape, graph, (m - few) // group, level, levels, entering, leaving)


def _first_alike(graph: Graph, levels: int) -> int | None:
    """The first level from which two periods of so many are alike, and wait for the same before them."""
    starts, none = np.array(graph.starts), graph.shape.tasks
    for level in range(len(starts) - 2 * levels):
        first, middle, last = (int(starts[level + many * levels]) for many in range(3))
        tasks = middle - first
        if last - middle != tasks or (graph.kind[first:middle] != graph.kind[middle:last]).any():
            continue
        if (np.diff(starts[level : level + levels + 1]) != np.diff(starts[level + levels :][: levels + 1])).any():
            continue
        edges = [
            (edge[first:middle] + np.where(edge[first:middle] == none, 0, tasks) == edge[middle:last]).all()
            for edge in (graph.before, graph.feed)
        ]
        if all(edges) and np.array_equal(_waited(graph, level) + tasks, _waited(graph, level + levels)):
            return level
    return None


def _waited(graph: Graph, level: int) -> Ints:
    """Places of the tasks before a level for which tasks from it on wait."""
    first = graph.starts[level]
    edges = np.concatenate([graph.before[first:], graph.feed[first:]])
    return np.unique(edges[edges < first]).astype(np.int64)


def _product(one: Floats, other: Floats) -> Floats:
    """Of two matrices in max-plus algebra."""
    found = np.full(one.shape, -np.inf)
    for middle in range(len(one)):
        np.maximum(found, one[:, middle, None] + other[middle], out=found)
    return found
