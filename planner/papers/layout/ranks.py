"""What every pipeline rank holds of the model: layers of each kind, and their parameters before sharding."""

from __future__ import annotations

from dataclasses import dataclass

from planner.papers.layout.layouts import Layout
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.stage_times import Stages, parameters
from planner.papers.layout.table import Kind


@dataclass(frozen=True, slots=True)
class Rank:
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
    found: list[Rank] = []
    for first in range(layout.pp):
        mine = range(first, len(held.layers), layout.pp)
        counts: dict[Kind, int] = {}
        for k in mine:
            for kind, count in held.layers[k].items():
                counts[kind] = counts.get(kind, 0) + count
        found.append(
            Rank(
                stages=mine,
                kinds=tuple(sorted(counts)),
                params=sum(count * each[kind][0] for kind, count in sorted(counts.items())),
                experts=sum(count * each[kind][1] for kind, count in sorted(counts.items())),
                params_unit=max(each[kind][0] for kind in counts),
                experts_unit=max(each[kind][1] for kind in counts),
            )
        )
    return found
