"""What every pipeline rank holds of the model: layers of each kind, and their parameters before sharding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from planner.papers.layout.layouts import Layout
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.stage_times import Stages, parameters
from planner.papers.layout.table import Kind


class Rank(NamedTuple):
    """One pipeline rank: its virtual stages, kinds of its layers, P_r, E_r, and the most of them in one layer."""

    stages: range
    kinds: tuple[Kind, ...]
    params: float
    experts: float
    params_unit: float
    experts_unit: float


def ranks(problem: LayoutProblem, layout: Layout, held: Stages) -> list[Rank]:
    """Ranks 0 … pp - 1."""
    each = {
        kind: parameters(problem, layout, problem.costs.by_key[layout.row_key(kind)])
        for kind in {kind for layers in held.layers for kind in layers}
    }
    alike: dict[tuple[tuple[Kind, int], ...], _Weights] = {}
    found: list[Rank] = []
    for first in range(layout.pp):
        mine = range(first, len(held.layers), layout.pp)
        counts = _counts(held, mine)
        if counts not in alike:
            alike[counts] = _weights(counts, each)
        found.append(Rank(mine, *alike[counts]))
    return found


_Weights = tuple[tuple[Kind, ...], float, float, float, float]
"""The fields of `Rank` but its stages."""


def _counts(held: Stages, mine: range) -> tuple[tuple[Kind, int], ...]:
    """Layers of each kind on a rank, by kind."""
    counts = held.layers[mine[0]]
    if len(mine) > 1:
        counts = dict(counts)
        for k in mine[1:]:
            for kind, count in held.layers[k].items():
                counts[kind] = counts.get(kind, 0) + count
    return tuple(sorted(counts.items()))


def _weights(counts: tuple[tuple[Kind, int], ...], each: Mapping[Kind, tuple[float, float]]) -> _Weights:
    """Of all ranks that hold so many layers of each kind, each with so many dense and expert parameters."""
    return (
        tuple(kind for kind, _ in counts),
        sum(count * each[kind][0] for kind, count in counts),
        sum(count * each[kind][1] for kind, count in counts),
        max(each[kind][0] for kind, _ in counts),
        max(each[kind][1] for kind, _ in counts),
    )
