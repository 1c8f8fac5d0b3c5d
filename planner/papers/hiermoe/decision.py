"""One layer's decision, and the solution document made of all of them, every figure counted anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.papers.hiermoe.exchange.hops import hops_of
from planner.papers.hiermoe.exchange.tables import ascending, moves, swaps_between
from planner.papers.hiermoe.exchange.time import a2a_seconds, hop_seconds, objective_seconds, rank_loads
from planner.papers.hiermoe.instance import Case, LayerCase, Loads, Table, Tokens, routing_digest
from planner.papers.hiermoe.replicas.front import FrontPoint
from planner.papers.hiermoe.solution import (
    FRONT_SLOTS,
    HiermoeSolution,
    HopUse,
    LayerPlacement,
    Move,
    Point,
    RoutingDetail,
    SwapOptimal,
)
from planner.routing.document import LoadsRouting, MaskRouting, UniformRouting


@dataclass(frozen=True, eq=False)
class Decision:
    """A table and its dimension; ``bound_s`` is what no placement of this layer is below, where an engine proved it."""

    table: Table
    dimension: int
    objective_s: float
    swap_optimal: SwapOptimal = False
    front: tuple[FrontPoint, ...] = ()
    within_load_limit: bool = True
    bound_s: float | None = None
    bound_kind: str = "solver"


def solution_of(case: Case, decisions: Sequence[Decision]) -> HiermoeSolution:
    """The document, layers in the case's order."""
    layers = tuple(_layer(case, layer, decision) for layer, decision in zip(case.layers, decisions, strict=True))
    return HiermoeSolution(layers=layers, objective_s=math.fsum(layer.objective_s for layer in layers))


def _layer(case: Case, layer: LayerCase, decision: Decision) -> LayerPlacement:
    table, d = ascending(decision.table, case.G), decision.dimension
    exchange_s, peaks = a2a_seconds(case, layer, table, d)
    loads = rank_loads(case, layer, table)
    each = case.problem.costs.expert_bytes
    moved = moves(layer.current, table, case.G)
    return LayerPlacement(
        layer_id=layer.layer_id,
        dimension=d,
        physical_to_logical=tuple(table.tolist()),
        objective_s=objective_seconds(case, exchange_s, loads),
        a2a_s=exchange_s,
        peak_assignments=float(loads.max()),
        hops=_hops(case, d, peaks),
        moved_experts=len(moved),
        moved_bytes=None if each is None else len(moved) * each,
        moves=tuple(
            Move(expert=move.expert, to_slot=move.to_slot, from_slot=move.from_slot, bytes=each) for move in moved
        ),
        swaps=tuple(swaps_between(layer.current, table, case.G)) if case.P == case.E else None,
        swap_optimal=decision.swap_optimal,
        routing_detail=_detail(layer),
        routing_sha256=_digest(case, layer),
        front=_front(case, decision) if case.P > case.E else None,
    )


def _hops(case: Case, d: int, peaks: Sequence[float]) -> tuple[HopUse, ...]:
    return tuple(
        HopUse(
            kind=hop.kind,
            level=hop.level,
            participants=hop.participants,
            peak_tokens=peak,
            bytes=hop.participants * peak * case.problem.costs.token_bytes,
            time_s=hop_seconds(case, hop, peak),
        )
        for hop, peak in zip(hops_of(case, d), peaks, strict=True)
    )


def _front(case: Case, decision: Decision) -> tuple[Point, ...] | None:
    """The points that the decision was chosen from; None where a limit or a proof put another one in their place."""
    at = (decision.dimension, decision.table.tobytes())
    if all((point.dimension, point.table.tobytes()) != at for point in decision.front):
        return None
    with_tables = len(case.layers) * case.P <= FRONT_SLOTS
    return tuple(
        Point(
            dimension=point.dimension,
            peak_load=point.peak_load,
            a2a_s=point.a2a_s,
            objective_s=objective_seconds(case, point.a2a_s, np.array([point.peak_load])),
            physical_to_logical=tuple(point.table.tolist()) if with_tables else None,
        )
        for point in decision.front
    )


def _detail(layer: LayerCase) -> RoutingDetail:
    return "tokens" if isinstance(layer.routed, Tokens) else "loads" if isinstance(layer.routed, Loads) else "uniform"


def _digest(case: Case, layer: LayerCase) -> str | None:
    """Of what the plan does not spell out: drawn or read tokens."""
    routing = next(each.routing for each in case.problem.layers if each.layer_id == layer.layer_id)
    stated = isinstance(routing, MaskRouting | LoadsRouting | UniformRouting)
    return None if stated else routing_digest(layer.routed)
