"""What a method does with one layer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.errors import LimitError
from planner.papers.hiermoe import rivals
from planner.papers.hiermoe.budget import charges_load, load_limit
from planner.papers.hiermoe.decision import Decision
from planner.papers.hiermoe.exact.reference import cannot, exact_layer, is_small
from planner.papers.hiermoe.exchange.tables import ascending, moved_count
from planner.papers.hiermoe.exchange.time import TIE, best_dimension, layer_objective, rank_loads
from planner.papers.hiermoe.instance import Case, LayerCase, Table, Uniform
from planner.papers.hiermoe.replicas.front import FrontPoint
from planner.papers.hiermoe.replicas.place import objective_of, place_replicas, replica_curve
from planner.papers.hiermoe.swaps.descent import best_plain
from planner.papers.hiermoe.swaps.move_curve import CurvePoint, place_curve
from planner.papers.hiermoe.swaps.renaming import least_moved
from planner.papers.hiermoe.swaps.search import place_layer, walker
from solvers.report import Limits

AUTO_SHARE = 0.25
"""Share of the reference's budget that is spent, over all layers, where nobody asked for it by name."""


@dataclass(frozen=True)
class Job:
    """How to place a layer. ``max_moved`` experts may move; None: any number. ``exact``: auto, never or always."""

    exact: str
    limits: Limits
    max_moved: int | None = None


def search_layer(case: Case, layer: LayerCase, job: Job) -> Decision:
    """Local search, no worse than any rule of the page, then the exact reference where it is asked for."""
    found = _replicas(case, layer, job) if case.P > case.E else _swaps(case, layer, job)
    if job.exact == "never" or (job.exact == "auto" and not is_small(case, layer)):
        return found
    reason = cannot(case, layer)
    if reason is not None:
        raise LimitError(f"layer {layer.layer_id}: {reason}", code="exact_too_large", where=f"layers.{layer.layer_id}")
    return _exact(case, layer, job, found)


def one_swap_layer(case: Case, layer: LayerCase, job: Job) -> Decision:
    """The paper's method; the placement stays where the swap would exceed the moves allowed, or gains too little."""
    table, d = rivals.one_swap(case, layer)
    too_many = job.max_moved is not None and moved_count(layer.current, table, case.G) > job.max_moved
    if too_many or _gains_too_little(case, layer, layer_objective(case, layer, table, d)):
        table = ascending(layer.current, case.G)
    return _decided(case, layer, table, d)


def layer_curve(case: Case, layer: LayerCase, job: Job) -> list[CurvePoint]:
    """What each number of moved experts reaches, within the limit on rank loads if any point is.

    Points that move experts and gain less than ``min_relative_gain`` are left out.
    """
    if case.P > case.E:
        points = [
            CurvePoint(moved, objective_of(case, at), at.dimension, at.table)
            for moved, at in sorted(replica_curve(case, layer, job.limits.effort).items())
        ]
    else:
        points = list(place_curve(case, layer, effort=job.limits.effort))
    within = [point for point in points if _within(case, layer, point.table)] or points
    return [point for point in within if point.moved == 0 or not _gains_too_little(case, layer, point.objective_s)]


def one_swap_curve(case: Case, layer: LayerCase, job: Job) -> list[CurvePoint]:
    """The current placement, and the paper's swap."""
    current = ascending(layer.current, case.G)
    d, objective_s = best_dimension(case, layer, current)
    swapped = one_swap_layer(case, layer, replace(job, max_moved=None))
    moved = moved_count(layer.current, swapped.table, case.G)
    return [
        CurvePoint(0, objective_s, d, current),
        CurvePoint(moved, swapped.objective_s, swapped.dimension, swapped.table),
    ]


def at_point(case: Case, layer: LayerCase, point: CurvePoint) -> Decision:
    """The decision for a placement as it is."""
    return _decided(case, layer, point.table, point.dimension)


def at_table(case: Case, layer: LayerCase, table: Table) -> Decision:
    """The decision for a table at its best dimension."""
    return _decided(case, layer, ascending(table, case.G), best_dimension(case, layer, table)[0])


def _swaps(case: Case, layer: LayerCase, job: Job) -> Decision:
    placed = place_layer(case, layer, max_moved=job.max_moved, effort=job.limits.effort)
    best = Decision(
        placed.table,
        placed.dimension,
        placed.objective_s,
        placed.swap_optimal,
        within_load_limit=placed.within_load_limit,
    )
    if isinstance(layer.routed, Uniform):
        return best
    for table in rivals.rival_tables(case, layer):
        d, objective_s = best_dimension(case, layer, table)
        gains = objective_s < best.objective_s * (1 - TIE)
        if not gains or _gains_too_little(case, layer, objective_s) or not _within(case, layer, table):
            continue
        named = least_moved(layer.current, table, case.U[:d], case.G)
        if job.max_moved is None or moved_count(layer.current, named, case.G) <= job.max_moved:
            best = _decided(case, layer, named, d)
    return best


def _replicas(case: Case, layer: LayerCase, job: Job) -> Decision:
    found = place_replicas(case, layer, job.limits.effort)
    chosen, front = found.chosen, found.front
    if job.max_moved is not None and moved_count(layer.current, chosen.table, case.G) > job.max_moved:
        curve = replica_curve(case, layer, job.limits.effort)
        chosen = min(
            (point for moved, point in sorted(curve.items()) if moved <= job.max_moved),
            key=lambda point: (not _within(case, layer, point.table), objective_of(case, point)),
        )
        front = ()
    if _gains_too_little(case, layer, objective_of(case, chosen)):
        return replace(at_table(case, layer, layer.current), front=front)
    return _decided(case, layer, chosen.table, chosen.dimension, front)


def _exact(case: Case, layer: LayerCase, job: Job, found: Decision) -> Decision:
    hint = found.table if found.within_load_limit else None
    exact = exact_layer(case, layer, hint, job.limits, job.max_moved)
    better = found
    gains = exact.table is not None and (hint is None or exact.objective_s < found.objective_s * (1 - TIE))
    if exact.table is not None and gains and not _takes_load(case, layer, job, exact.table, found):
        table = ascending(exact.table, case.G)
        if case.P == case.E and job.max_moved is None:
            table = least_moved(layer.current, table, case.U[: exact.d], case.G)
        if not _gains_too_little(case, layer, exact.objective_s):
            better = _decided(case, layer, table, exact.d, found.front)
    return replace(better, bound_s=exact.bound_s, bound_kind=exact.kind)


def _takes_load(case: Case, layer: LayerCase, job: Job, table: Table, found: Decision) -> bool:
    """Whether a table with copies is quicker at the cost of rank load, which nothing charges and nobody asked for."""
    if case.P == case.E or charges_load(case.problem) or job.exact == "always":
        return False
    return bool(rank_loads(case, layer, table).max() > rank_loads(case, layer, found.table).max())


def _decided(case: Case, layer: LayerCase, table: Table, d: int, front: tuple[FrontPoint, ...] = ()) -> Decision:
    optimal = case.P == case.E
    if optimal and not isinstance(layer.routed, Uniform):
        placement = walker(case, layer).at(table, d)
        placement.unlimited()
        optimal = best_plain(placement, None) is None
    objective_s = layer_objective(case, layer, table, d)
    return Decision(table, d, objective_s, optimal, front, _within(case, layer, table))


def _gains_too_little(case: Case, layer: LayerCase, objective_s: float) -> bool:
    """Less than ``min_relative_gain`` over a current placement that could be kept."""
    gain = case.problem.search.min_relative_gain
    if not gain or not _within(case, layer, layer.current):
        return False
    return objective_s > best_dimension(case, layer, layer.current)[1] * (1 - gain)


def _within(case: Case, layer: LayerCase, table: Table) -> bool:
    if case.problem.search.max_load_ratio is None:
        return True
    loads = rank_loads(case, layer, table)
    return bool(loads.max() <= load_limit(case.problem, float(loads.sum())))
