"""The points that a plan lists beside its placement: each counted again, and none beaten by another."""

from __future__ import annotations

from planner.findings import Findings
from planner.papers.hiermoe.checks.counts import agree, recount
from planner.papers.hiermoe.checks.table import check_slots, named
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.solution import FRONT_SLOTS, LayerPlacement, Point
from planner.routing.routed import Routed

CODE = "front_mismatch"
MOST_POINTS = 64
"""Each is counted token by token."""


def check_front(problem: HiermoeProblem, layer: LayerPlacement, routed: Routed, where: str, found: Findings) -> None:
    """Every listed point: its table and figures, and whether another one is at least as good in both."""
    points = layer.front or ()
    where = f"{where}.front"
    if len(points) > MOST_POINTS:
        found.add(CODE, f"expected at most {MOST_POINTS} points, got {len(points)}", where)
        return
    for number, point in enumerate(points):
        _check_point(problem, point, routed, f"{where}[{number}]", found)
        if point.physical_to_logical is None and len(problem.layers) * problem.slots <= FRONT_SLOTS:
            found.add(CODE, "has no table to count it by", f"{where}[{number}]")
        for other in points[:number]:
            if _beats(other, point) or _beats(point, other):
                found.add(CODE, "another point is as good in load and exchange", f"{where}[{number}]")
    if points and not any(_is_planned(layer, point) for point in points):
        found.add(CODE, "the planned placement is none of the points", where)


def _check_point(problem: HiermoeProblem, point: Point, routed: Routed, where: str, found: Findings) -> None:
    if point.dimension not in problem.allowed_dimensions:
        found.add(CODE, f"dimension {named(point.dimension)} is not one of the problem", f"{where}.dimension")
        return
    weights, kappa = problem.objective, problem.costs.compute_s_per_assignment
    peak_load, a2a_s = point.peak_load, point.a2a_s
    if point.physical_to_logical is not None:
        wrong = Findings()
        table = check_slots(problem, point.physical_to_logical, where, wrong)
        for violation in wrong.in_order(tuple(wrong.listed)):
            found.add(CODE, f"{violation.code}: {violation.message}", violation.where)
        if table is None:
            return
        counted = recount(problem, routed, table, point.dimension)
        peak_load, a2a_s = counted.peak_load, counted.a2a_s
    objective_s = weights.a2a_multiplier * a2a_s + weights.compute_multiplier * kappa * peak_load
    for name, value in (("peak_load", peak_load), ("a2a_s", a2a_s), ("objective_s", objective_s)):
        if not agree(getattr(point, name), value):
            found.add(CODE, f"stated {getattr(point, name)!r}, recomputed {value!r}", f"{where}.{name}")


def _is_planned(layer: LayerPlacement, point: Point) -> bool:
    if point.physical_to_logical is not None:
        same = point.physical_to_logical == layer.physical_to_logical
    else:
        same = agree(point.peak_load, layer.peak_assignments) and agree(point.a2a_s, layer.a2a_s)
    return point.dimension == layer.dimension and same


def _beats(one: Point, other: Point) -> bool:
    return one.peak_load <= other.peak_load and one.a2a_s <= other.a2a_s
