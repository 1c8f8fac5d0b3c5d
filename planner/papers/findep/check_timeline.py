"""The part of the check that reads a timeline: whether it gives every layer's starts, and what they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.findings import Findings
from planner.papers.findep.check_facts import Floats
from planner.papers.findep.problem import FindepProblem
from planner.papers.findep.solution import FindepSolution, LayerStarts, Timeline


@dataclass(frozen=True)
class Starts:
    """Start times [s] of all layers by kind of task: [T, r1] for attention and shared, [T, r1, r2] for the others.

    ``shared`` is absent where the problem has no shared experts.
    """

    of: dict[str, Floats]
    timeline: Timeline
    num_layers: int

    def place(self, kind: str, index: tuple[int, ...]) -> str:
        """The path in the solution of the start of a task; the first layer of its kind where layers repeat."""
        layer, *inner = index
        prologue, steady = len(self.timeline.prologue), self.timeline.steady
        last = self.num_layers - len(self.timeline.epilogue)
        if layer < prologue:
            place = f"prologue.{layer}"
        elif layer >= last:
            place = f"epilogue.{layer - last}"
        else:
            place = f"steady.layers.{(layer - prologue) % (steady.cycle_layers if steady else 1)}"
        return ".".join(["timeline", place, kind, *map(str, inner)])


def read_starts(problem: FindepProblem, solution: FindepSolution, found: Findings) -> Starts | None:
    """The starts of every layer; None, with what is wrong noted, where the timeline does not give them.

    r1 and r2 must be inside the problem's box, which bounds what is allocated.
    """
    timeline, num_layers = solution.timeline, problem.num_layers
    steady = timeline.steady
    listed, cycle = len(timeline.prologue) + len(timeline.epilogue), steady.cycle_layers if steady else 0
    if not listed and steady is None:
        found.add("timeline_missing", f"lists no layer, expected {num_layers}", "timeline")
        return None
    sound = True
    if steady is not None and len(steady.layers) != cycle:
        message = f"has {len(steady.layers)} layers, expected cycle_layers = {cycle}"
        found.add("timeline_shape", message, "timeline.steady.layers")
        sound = False
    shared = 0 if problem.shared_expert is None else solution.r1
    for place, layer in _layers(timeline):
        if fault := _shape_fault(layer, solution.r1, solution.r2, shared):
            found.add("timeline_shape", fault[1], f"timeline.{place}.{fault[0]}")
            sound = False
    if listed + cycle > num_layers or (steady is None and listed < num_layers):
        repeated = f" and {cycle} that repeat" if cycle else ""
        found.add("timeline_incomplete", f"lists {listed} layers{repeated}, expected {num_layers} in all", "timeline")
        sound = False
    if not sound:
        return None
    kinds = ("attention", *(("shared",) if shared else ()), "a2e", "expert", "e2a")
    return Starts({kind: _expand(timeline, num_layers, kind) for kind in kinds}, timeline, num_layers)


def _layers(timeline: Timeline) -> Iterator[tuple[str, LayerStarts]]:
    for index, layer in enumerate(timeline.prologue):
        yield f"prologue.{index}", layer
    for index, layer in enumerate(timeline.steady.layers if timeline.steady else ()):
        yield f"steady.layers.{index}", layer
    for index, layer in enumerate(timeline.epilogue):
        yield f"epilogue.{index}", layer


def _shape_fault(layer: LayerStarts, r1: int, r2: int, shared: int) -> tuple[str, str] | None:
    """The first list of a wrong length, and what is wrong with it."""
    for kind, number in (("attention", r1), ("shared", shared), ("a2e", r1), ("expert", r1), ("e2a", r1)):
        row = getattr(layer, kind)
        if len(row) != number:
            return kind, f"has {len(row)} entries, expected {number}"
    for kind in ("a2e", "expert", "e2a"):
        for index, row in enumerate(getattr(layer, kind)):
            if len(row) != r2:
                return f"{kind}.{index}", f"has {len(row)} chunks, expected {r2}"
    return None


def _expand(timeline: Timeline, num_layers: int, kind: str) -> Floats:
    """Starts of one kind of task in every layer."""
    parts = []
    if timeline.prologue:
        parts.append(_stacked(timeline.prologue, kind))
    if steady := timeline.steady:
        repeated = num_layers - len(timeline.prologue) - len(timeline.epilogue)
        layers = _stacked(steady.layers, kind)
        turns = np.arange(-(-repeated // steady.cycle_layers), dtype=np.float64) * steady.period_s
        every = turns.reshape(-1, *[1] * layers.ndim) + layers
        parts.append(every.reshape(-1, *layers.shape[1:])[:repeated])
    if timeline.epilogue:
        parts.append(_stacked(timeline.epilogue, kind))
    return np.concatenate(parts)


def _stacked(layers: tuple[LayerStarts, ...], kind: str) -> Floats:
    return np.array([getattr(layer, kind) for layer in layers], dtype=np.float64)
