"""How layers may be cut into stages (page, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from planner.papers.layout.problem import LayerRun, PartitionKind
from planner.papers.layout.table import Kind

MOST_UNEVEN = 4
"""Layers by which the two stages of ``ends`` may differ."""
EXTRA_LAYERS = 2
"""Layers that a middle stage of ``ends`` may have beyond an even share."""


@cache
def partitions(
    num_layers: int, num_stages: int, chunks_per_rank: int, kinds: tuple[PartitionKind, ...]
) -> tuple[tuple[int, ...], ...]:
    """Layers of every virtual stage, each way of the asked kinds once, ascending.

    ``even``: as many everywhere. ``ends``, one chunk a rank: as many everywhere but in the first and the last, which
    have no more than the others; of one stage, all.
    """
    found: set[tuple[int, ...]] = set()
    virtual_stages = num_stages * chunks_per_rank
    if "even" in kinds and num_layers % virtual_stages == 0:
        found.add((num_layers // virtual_stages,) * virtual_stages)
    if "ends" in kinds and chunks_per_rank == 1:
        found.update(_ends(num_layers, num_stages))
    return tuple(sorted(found))


def _ends(num_layers: int, num_stages: int) -> Iterator[tuple[int, ...]]:
    if num_stages == 1:
        yield (num_layers,)
    elif num_stages == 2:
        for first in range(1, num_layers):
            last = num_layers - first
            if abs(first - last) <= MOST_UNEVEN:
                yield (first, last)
    else:
        even = -(-num_layers // num_stages)
        for middle in range(even, even + EXTRA_LAYERS + 1):
            rest = num_layers - (num_stages - 2) * middle
            for first in range(max(1, rest - middle), min(middle, rest - 1) + 1):
                yield (first, *(middle,) * (num_stages - 2), rest - first)


def layers_by_stage(layers: Sequence[LayerRun], partition: Sequence[int]) -> list[dict[Kind, int]]:
    """How many layers of each kind every virtual stage holds; kinds it has none of are left out."""
    runs = [(run.kind, run.count) for run in layers]
    stages: list[dict[Kind, int]] = []
    place = used = 0
    for size in partition:
        held: dict[Kind, int] = {}
        while size:
            kind, count = runs[place]
            taken = min(size, count - used)
            held[kind] = held.get(kind, 0) + taken
            size -= taken
            used += taken
            if used == count:
                place, used = place + 1, 0
        stages.append(held)
    return stages
