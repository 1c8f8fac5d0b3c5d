"""What fewer moves cost: the objective of one layer as a function of how many experts change rank."""

from __future__ import annotations

from dataclasses import dataclass

from planner.papers.hiermoe.exchange.tables import ascending
from planner.papers.hiermoe.exchange.time import TIE, best_dimension, layer_objective
from planner.papers.hiermoe.instance import Case, LayerCase, Table, Uniform
from planner.papers.hiermoe.swaps.descent import Walk, descend
from planner.papers.hiermoe.swaps.homing import back_within
from planner.papers.hiermoe.swaps.moving_placement import MovingPlacement
from planner.papers.hiermoe.swaps.search import best_of_starts, walker


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """A placement that moves ``moved`` experts, at its dimension, and its objective."""

    moved: int
    objective_s: float
    dimension: int
    table: Table


def place_curve(case: Case, layer: LayerCase, *, effort: float = 1.0) -> tuple[CurvePoint, ...]:
    """Placements by moves, 0 first, each better than all before: no replicas.

    From one walk that starts at the current placement, and one that leads back to it from the best placement met.
    Each is a placement of its own, not swap-optimal: ``place_layer`` with that budget may do better.
    """
    current = ascending(layer.current, case.G)
    dimension, objective_s = best_dimension(case, layer, current)
    met = {0: CurvePoint(0, objective_s, dimension, current)}
    if not isinstance(layer.routed, Uniform):
        by = walker(case, layer, effort)

        def visit(placement: MovingPlacement) -> None:
            moved = placement.moved
            if moved not in met or placement.plain < met[moved].objective_s:
                met[moved] = CurvePoint(moved, placement.plain, placement.d, placement.table())

        best = best_of_starts(by, by.at(current, dimension))
        visit(best)
        forth = by.walk()
        forth.visit = visit
        descend(by.at(current, best.d), forth)
        back_within(best, Walk(case.E, None, visit), 0)
    points: list[CurvePoint] = []
    for _, point in sorted(met.items()):
        exact_s = layer_objective(case, layer, point.table, point.dimension)
        if not points or exact_s < points[-1].objective_s * (1 - TIE):
            points.append(CurvePoint(point.moved, exact_s, point.dimension, point.table))
    return tuple(points)
