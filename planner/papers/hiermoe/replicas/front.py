"""The small Pareto front of what a search met: largest rank load against exchange time."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.papers.hiermoe.exchange.tables import changed
from planner.papers.hiermoe.instance import Table
from planner.papers.hiermoe.replicas.state import Changes

MOST = 8
"""Points kept at the end."""


@dataclass(frozen=True, eq=False)
class FrontPoint:
    """One placement, the dimension it was met in, and what it is judged by."""

    peak_load: float
    a2a_s: float
    dimension: int
    table: Table


@dataclass
class Front:
    """Points that none met beats on both figures; the first of equals stays."""

    points: list[FrontPoint] = field(default_factory=list)

    def meet(self, peak_load: float, a2a_s: float, dimension: int, table: Table, changes: Changes = ()) -> None:
        """Keep a table, with some of its slots changed, if nothing met is at least as good on both figures."""
        if any(point.peak_load <= peak_load and point.a2a_s <= a2a_s for point in self.points):
            return
        self.points = [p for p in self.points if p.peak_load < peak_load or p.a2a_s < a2a_s]
        self.points.append(FrontPoint(peak_load, a2a_s, dimension, changed(table, changes)))

    def thinned(self, chosen: FrontPoint) -> list[FrontPoint]:
        """At most MOST points by ascending load, evenly over the front, with both ends and the chosen one."""
        points = sorted(self.points, key=lambda point: (point.peak_load, point.a2a_s))
        if len(points) <= MOST:
            return points
        last = len(points) - 1
        kept = {round(step * last / (MOST - 2)) for step in range(MOST - 1)}
        kept.add(next(i for i, point in enumerate(points) if point is chosen))
        return [points[i] for i in sorted(kept)]
