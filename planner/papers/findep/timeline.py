"""A schedule's starts, layer by layer: written short where layers repeat, and written out again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from planner.papers.findep.solution import LayerStarts, Steady, Timeline
from planner.validation import trusted

Floats = NDArray[np.float64]

EXACT = 1e-12
"""Layers repeat if their starts differ by this share of the makespan at most: rounding, nothing else."""


def shorten(rows: Floats, r1: int, r2: int, makespan_s: float) -> Timeline:
    """The schedule as prologue, what repeats to the end, and no epilogue; a layer that runs once is listed.

    ``rows`` [layers, starts]: a layer's attention[r1], shared[r1] or nothing, a2e, expert, e2a [r1 x r2]. Of cycles of
    one and two layers the one with the shorter prologue, of equal ones the cycle of one.
    """
    found: tuple[int, int] | None = None
    for cycle in (1, 2):
        first = _first_repeating(rows, cycle, EXACT * makespan_s)
        if first is not None and (found is None or first < found[0]):
            found = first, cycle
    if found is None:
        return Timeline(prologue=tuple(_layer(row, r1, r2) for row in rows), steady=None, epilogue=())
    first, cycle = found
    steady = Steady(
        cycle_layers=1 if cycle == 1 else 2,
        period_s=float(rows[first + cycle, 0] - rows[first, 0]),
        layers=tuple(_layer(row, r1, r2) for row in rows[first : first + cycle]),
    )
    return Timeline(prologue=tuple(_layer(row, r1, r2) for row in rows[:first]), steady=steady, epilogue=())


def _first_repeating(rows: Floats, cycle: int, tolerance_s: float) -> int | None:
    """The first layer from which on layer t + cycle is layer t, later by a constant; None if no layer repeats."""
    if len(rows) <= cycle:
        return None
    steps = rows[cycle:] - rows[:-cycle]
    # Every layer adds its rounding to a shift, so steps are compared with the period over the whole stretch they span.
    period_s = steps[-1, 0]
    broken = np.flatnonzero(np.abs(steps - period_s).max(axis=1) > tolerance_s)
    first = int(broken[-1]) + 1 if len(broken) else 0
    return first if first + cycle < len(rows) else None


def _layer(row: Floats, r1: int, r2: int) -> LayerStarts:
    chunks = row[len(row) - 3 * r1 * r2 :].reshape(3, r1, r2).tolist()
    own = row[: len(row) - 3 * r1 * r2].tolist()
    a2e, expert, e2a = (tuple(tuple(starts) for starts in kind) for kind in chunks)
    values: dict[str, object] = {
        "attention": tuple(own[:r1]),
        "shared": tuple(own[r1:]),
        "a2e": a2e,
        "expert": expert,
        "e2a": e2a,
    }
    return trusted(LayerStarts, values)


def layer_starts(timeline: Timeline, num_layers: int, layer: int) -> LayerStarts:
    """The starts of one layer, counted from 0. Raises IndexError where the timeline does not say."""
    first, last = len(timeline.prologue), num_layers - len(timeline.epilogue)
    if layer < first:
        return timeline.prologue[layer]
    if layer >= last:
        return timeline.epilogue[layer - last]
    if timeline.steady is None:
        raise IndexError(f"layer {layer} is not in the timeline")
    turn, place = divmod(layer - first, timeline.steady.cycle_layers)
    return shifted(timeline.steady.layers[place], turn * timeline.steady.period_s)


def expand(timeline: Timeline, num_layers: int) -> Iterator[LayerStarts]:
    """All layers in order."""
    return (layer_starts(timeline, num_layers, layer) for layer in range(num_layers))


def shifted(layer: LayerStarts, later_s: float) -> LayerStarts:
    """The layer, later by so many seconds."""

    def rows(starts: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(start + later_s for start in row) for row in starts)

    values: dict[str, object] = {
        "attention": tuple(start + later_s for start in layer.attention),
        "shared": tuple(start + later_s for start in layer.shared),
        "a2e": rows(layer.a2e),
        "expert": rows(layer.expert),
        "e2a": rows(layer.e2a),
    }
    return trusted(LayerStarts, values)
