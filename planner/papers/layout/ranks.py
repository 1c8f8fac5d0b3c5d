"""What pipeline ranks hold of the model: layers of each kind, and their parameters before sharding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from planner.papers.layout.composition import Alike
from planner.papers.layout.layouts import Layout
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.stage_times import Stages, parameters
from planner.papers.layout.table import Kind


class Rank(NamedTuple):
    """Pipeline ranks that are alike: the ranks, the virtual stages of the first, kinds of layers, P_r and E_r.

    ``params_unit`` and ``experts_unit`` are the most of either in one layer.
    """

    places: tuple[int, ...]
    stages: range
    kinds: tuple[Kind, ...]
    params: float
    experts: float
    params_unit: float
    experts_unit: float


def ranks(problem: LayoutProblem, layout: Layout, held: Stages) -> list[Rank]:
    """Those that differ, each once."""
    each = {kind: parameters(problem, layout, problem.costs.by_key[layout.row_key(kind)]) for kind in held.held.kinds}
    return [_rank(alike, each) for alike in held.held.ranks]


def _rank(alike: Alike, each: Mapping[Kind, tuple[float, float]]) -> Rank:
    """From dense and expert parameters of a layer of each kind."""
    params = experts = params_unit = experts_unit = 0.0
    for kind, count in alike.counts:
        dense, expert = each[kind]
        params += count * dense
        experts += count * expert
        params_unit = max(params_unit, dense)
        experts_unit = max(experts_unit, expert)
    kinds = tuple([kind for kind, _ in alike.counts])
    return Rank(alike.places, alike.stages, kinds, params, experts, params_unit, experts_unit)
