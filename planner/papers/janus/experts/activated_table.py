"""The a_max table of a problem's traced layers (page, "a_max table")."""

from __future__ import annotations

import numpy as np

from planner.attribution import Sources
from planner.documents import digest
from planner.errors import BadInputError
from planner.json_text import Json
from planner.papers.janus.costs import Activated, ActivatedByRouting, ActivatedTable
from planner.papers.janus.experts.layers import most_placeable, placed_of, refuse_large, tokens_of
from planner.papers.janus.experts.usual_grid import usual_grid, wanted_power
from planner.papers.janus.experts.windows import MOST_WINDOWS, row, windows_of
from planner.papers.janus.problem import SizingProblem
from planner.papers.janus.shown.words import many

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
    E, grid = problem.num_experts, wanted.batch_grid or usual_grid(problem, place)
    if slots < E:
        most_instances = min(most_instances, most_placeable(E, slots))
    sizes = wanted.expert_instances or usual_sizes(-(-E // slots), most_instances)
    _refuse(problem, len(grid), sizes, slots, place)
    sums = np.zeros((len(sizes), len(grid)))
    counts = np.zeros(len(grid), np.int64)
    measured = 0
    for index, layer in enumerate(problem.layers):
        tokens = tokens_of(problem, layer)
        short = [number for number, size in enumerate(grid) if size > len(tokens.ids)]
        if short:
            message = (
                f"layer {layer.layer_id} has {many(len(tokens.ids), 'token')} (layers.{index}), which is no window of "
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
        layers_sha256=layers_digest(problem, slots, usual=wanted.batch_grid is None),
        usual_grid=True if wanted.batch_grid is None else None,
    )


def layers_digest(problem: SizingProblem, slots: int, *, usual: bool) -> str:
    """sha256 of all that a table is read off but its stated grid and sizes: the traced layers, E, K and C.

    A ``usual`` grid is of demand and SLO: so is then the digest, as far as they move its end.
    """
    layers = sorted(problem.layers, key=lambda layer: layer.layer_id)
    read_from: dict[str, Json] = {
        "layers": [layer.model_dump(exclude_none=True) for layer in layers],
        "num_experts": problem.num_experts,
        "top_k": problem.top_k,
        "slots_per_instance": slots,
    }
    return digest(read_from | {"usual_grid_to_power": wanted_power(problem)} if usual else read_from)


def read_off(problem: SizingProblem, a_max: Activated, slots: int, place: str) -> ActivatedByRouting | None:
    """How the layers are to be read into a table: as asked for, or as a table was whose layers are others now.

    None for an a_max that is not of layers, or of these. ``place`` is its path. Raises BadInputError (missing_field)
    for a table of layers where there are none.
    """
    if not isinstance(a_max, ActivatedTable):
        return a_max if isinstance(a_max, ActivatedByRouting) else None
    usual = a_max.usual_grid is not None
    if a_max.layers_sha256 is None or a_max.layers_sha256 == layers_digest(problem, slots, usual=usual):
        return None
    if not problem.layers:
        message = "the table was read off layers, and there are none: state them, or leave out layers_sha256 to keep it"
        raise BadInputError(message, code="missing_field", where=f"{place}.layers_sha256")
    fewest = -(-problem.num_experts // slots)
    sizes = tuple(dict.fromkeys((fewest, *(size for size in a_max.expert_instances if size > fewest))))
    grid = None if usual else a_max.batch_grid
    return ActivatedByRouting(batch_grid=grid, expert_instances=sizes, statistic=a_max.statistic or "mean")


def usual_sizes(fewest: int, most: int) -> tuple[int, ...]:
    """Up to ROWS numbers of instances from the fewest on, a constant ratio apart, consecutive where that is less."""
    last = max(fewest, min(most, fewest * SPREAD))
    spaced = np.geomspace(fewest, last, ROWS)
    sizes = [fewest]
    for size in np.rint(spaced).astype(int).tolist():
        if size > sizes[-1]:
            sizes.append(size)
    return tuple(sizes)


def _refuse(problem: SizingProblem, points: int, sizes: tuple[int, ...], slots: int, place: str) -> None:
    E, layers = problem.num_experts, len(problem.layers)
    if sizes[0] * slots < E:
        message = (
            f"expected numbers from {-(-E // slots)} on, the fewest instances that hold all experts, got {sizes[0]}"
        )
        raise BadInputError(message, code="out_of_range", where=f"{place}.expert_instances.0")
    if points * MOST_WINDOWS * E > MOST_FLAGS:
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
