"""The a_max table of a problem's traced layers (page, "a_max table")."""

from __future__ import annotations

import numpy as np

from planner.attribution import Sources
from planner.errors import BadInputError
from planner.papers.janus.costs import ActivatedByRouting, ActivatedTable
from planner.papers.janus.experts.layers import most_placeable, placed_of, refuse_large, tokens_of
from planner.papers.janus.experts.windows import MOST_WINDOWS, row, windows_of
from planner.papers.janus.problem import SizingProblem

ROWS = 16
"""Rows of a table whose rows are not stated."""
SPREAD = 8
"""They end at this multiple of the fewest instances: with so many copies more change little."""
MOST_FLAGS = 2**28
"""Windows x experts of one layer."""
MOST_STEPS, STEP = 2**32, 2048
"""Placing a copy looks at its instances and at all experts, and costs STEP more: at most so much for all of a table."""


def activated_table(
    problem: SizingProblem, wanted: ActivatedByRouting, slots: int, most_instances: int, place: str
) -> ActivatedTable:
    """The table of instances with so many slots; a value is the mean over the layers, and rows do not fall with B.

    ``place`` is the path of ``wanted`` in the problem. Raises BadInputError where a layer has not a single window of
    some batch, a row cannot hold all experts, or the table would be too large to make.
    """
    E, grid = problem.num_experts, wanted.batch_grid
    if slots < E:
        most_instances = min(most_instances, most_placeable(E, slots))
    sizes = wanted.expert_instances or usual_sizes(-(-E // slots), most_instances)
    _refuse(problem, wanted, sizes, slots, place)
    sums = np.zeros((len(sizes), len(grid)))
    counts = np.zeros(len(grid), np.int64)
    measured = 0
    for index, layer in enumerate(problem.layers):
        tokens = tokens_of(problem, layer)
        short = [number for number, size in enumerate(grid) if size > len(tokens.ids)]
        if short:
            message = (
                f"layer {layer.layer_id} has {len(tokens.ids):,} tokens (layers.{index}), which is no window of "
                f"{grid[short[0]]:,}: end the grid there, or give a longer trace"
            )
            raise BadInputError(message, code="out_of_range", where=f"{place}.batch_grid.{short[0]}")
        measured += tokens.measured
        windows = windows_of(tokens.ids, E, grid)
        counts += windows.counts
        for number, instances in enumerate(sizes):
            sums[number] += row(windows, placed_of(problem, layer, slots, instances).table, wanted.statistic)
    layers = len(problem.layers)
    values = np.maximum.accumulate(sums / layers, axis=1)
    return ActivatedTable(
        batch_grid=grid,
        expert_instances=tuple(sizes),
        values=tuple(tuple(line) for line in values.tolist()),
        statistic=wanted.statistic,
        windows=tuple(counts.tolist()),
        sources=Sources(measured=measured / layers, modelled=1 - measured / layers),
    )


def usual_sizes(fewest: int, most: int) -> tuple[int, ...]:
    """Up to ROWS numbers of instances from the fewest on, a constant ratio apart, consecutive where that is less."""
    last = max(fewest, min(most, fewest * SPREAD))
    spaced = np.geomspace(fewest, last, ROWS)
    sizes = [fewest]
    for size in np.rint(spaced).astype(int).tolist():
        if size > sizes[-1]:
            sizes.append(size)
    return tuple(sizes)


def _refuse(problem: SizingProblem, wanted: ActivatedByRouting, sizes: tuple[int, ...], slots: int, place: str) -> None:
    E, layers = problem.num_experts, len(problem.layers)
    if sizes[0] * slots < E:
        message = (
            f"expected numbers from {-(-E // slots)} on, the fewest instances that hold all experts, got {sizes[0]}"
        )
        raise BadInputError(message, code="out_of_range", where=f"{place}.expert_instances.0")
    if len(wanted.batch_grid) * MOST_WINDOWS * E > MOST_FLAGS:
        message = f"expected at most {MOST_FLAGS // MOST_WINDOWS // E:,} points for {E} experts"
        raise BadInputError(message, code="too_large", where=f"{place}.batch_grid")
    refuse_large(E, slots, sizes[-1])
    steps = layers * sum(size * slots * (size + E + STEP) for size in sizes)
    if slots < E and steps > MOST_STEPS:
        message = (
            f"{len(sizes)} placements of up to {sizes[-1] * slots:,} slots in each of {layers} layers would take too "
            "long: list fewer expert_instances, or leave out layers"
        )
        raise BadInputError(message, code="too_large", where=place)
