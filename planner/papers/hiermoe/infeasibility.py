"""Why a problem has no plan (page, "When there is no plan"), and the least change that helps."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.errors import InfeasibleError, LimitError, PlanError, Relaxation
from planner.papers.hiermoe.bounds.layer_bound import layer_bound
from planner.papers.hiermoe.budget import TOLERANCE, load_limit, move_budget
from planner.papers.hiermoe.exact.enumeration import is_tiny, tables
from planner.papers.hiermoe.exact.load_model import fewest_moves, least_peak_load
from planner.papers.hiermoe.exchange.tables import moved_count
from planner.papers.hiermoe.exchange.time import rank_loads
from planner.papers.hiermoe.instance import Case, LayerCase, Table
from planner.papers.hiermoe.problem import HiermoeProblem
from solvers.report import Limits

RATIO = "search.max_load_ratio"


def diagnose(problem: HiermoeProblem) -> None:
    """Raise InfeasibleError where slots alone show it: codes replicas_exceed_ranks, expert_bytes_exceed_memory."""
    G, E, R = problem.topology.gpus, problem.num_experts, problem.redundant_slots
    if problem.forbid_same_rank_replicas and R > E * (G - 1):
        raise InfeasibleError(
            f"{R} redundant slots put two copies of an expert on one of {G} ranks in every table: {E} experts have at "
            f"most {E * (G - 1)} copies on other ranks",
            code="replicas_exceed_ranks",
            where="redundant_slots",
            required=R,
            available=E * (G - 1),
            relaxation=Relaxation("redundant_slots", E * (G - 1), proven=True),
        )
    memory, expert_bytes = problem.topology.expert_memory_bytes_per_gpu, problem.costs.expert_bytes
    if memory is None or expert_bytes is None:
        return
    slots, layers = (E + R) // G, len(problem.layers)
    needed = slots * layers * expert_bytes
    if needed > memory * (1 + TOLERANCE):
        field = "topology.expert_memory_bytes_per_gpu"
        raise InfeasibleError(
            f"{slots} experts a GPU in {layers} layer{'s' if layers > 1 else ''} exceed its memory for experts",
            code="expert_bytes_exceed_memory",
            where=field,
            required=needed,
            available=memory,
            relaxation=Relaxation(field, math.ceil(needed), proven=True),
        )


def within_limits(case: Case, limits: Limits) -> list[Table]:
    """Placements of all layers, in order, that keep the load limit and the move budget, with few moves.

    Raises InfeasibleError where it is proved that there are none, by equation 10 or exactly: load_limit, or
    move_budget where loads alone could be kept. Raises LimitError (limits_unproved) where neither is settled.
    """
    found = [_layer(case, layer, limits) for layer in case.layers]
    budget = move_budget(case.problem)
    needed = sum(layer.least for layer in found)
    if budget is not None and needed > budget:
        raise _budget_error(case, needed, budget, all(layer.proved for layer in found))
    tables_found = [layer.table for layer in found if layer.table is not None]
    if len(tables_found) < len(found):
        raise _unproved()
    moved = sum(
        moved_count(layer.current, table, case.G) for layer, table in zip(case.layers, tables_found, strict=True)
    )
    if budget is not None and moved > budget:
        raise _unproved()
    return tables_found


def _unproved() -> PlanError:
    return LimitError(
        f"no placement within {RATIO} and the move budget was found, nor a proof that there is none",
        code="limits_unproved",
        where=RATIO,
    )


@dataclass(frozen=True, eq=False)
class _Layer:
    """A placement within the load limit, if one was found; no such one moves fewer than ``least``."""

    table: Table | None
    least: int
    proved: bool


def _layer(case: Case, layer: LayerCase, limits: Limits) -> _Layer:
    loads = rank_loads(case, layer, layer.current)
    total = float(loads.sum())
    most = load_limit(case.problem, total)
    if loads.max() <= most:
        return _Layer(layer.current, 0, proved=True)
    least_load = layer_bound(case, layer).peak_load
    if least_load > most:
        raise _ratio_error(case, layer, total, least_load, limits)
    if case.P > case.E:
        return _tried(case, layer, total, most)
    balanced = fewest_moves(case, layer, most, limits)
    if balanced.impossible:
        raise _ratio_error(case, layer, total, least_load, limits)
    return _Layer(balanced.table, int(balanced.least), balanced.proved)


def _tried(case: Case, layer: LayerCase, total: float, most: float) -> _Layer:
    """With replicas loads depend on who is near: all placements of a tiny case, nothing of others."""
    if not is_tiny(case):
        return _Layer(None, 0, proved=False)
    best: tuple[int, Table] | None = None
    least_load = math.inf
    for table in tables(case, renamed=False):
        load = float(rank_loads(case, layer, table).max())
        least_load = min(least_load, load)
        moved = moved_count(layer.current, table, case.G)
        if load <= most and (best is None or moved < best[0]):
            best = moved, table
    if best is None:
        raise _load_error(case, layer, least_load * case.G / total, proven=True)
    return _Layer(best[1], best[0], proved=True)


def _ratio_error(case: Case, layer: LayerCase, total: float, least_load: float, limits: Limits) -> InfeasibleError:
    """The least ratio of a layer that cannot keep the limit, exactly where there are no replicas."""
    mean = total / case.G
    if case.P > case.E:
        return _load_error(case, layer, least_load / mean, proven=False)
    balanced = least_peak_load(case, layer, limits)
    if balanced.table is None:
        return _load_error(case, layer, max(least_load, balanced.least) / mean, proven=False)
    reached = float(rank_loads(case, layer, balanced.table).max())
    return _load_error(case, layer, reached / mean, proven=balanced.proved, enough=True)


def _load_error(
    case: Case, layer: LayerCase, ratio: float, *, proven: bool, enough: bool | None = None
) -> InfeasibleError:
    """``ratio`` is needed; ``enough`` if some placement has it."""
    only = len(case.layers) == 1
    return InfeasibleError(
        f"no placement of layer {layer.layer_id} keeps every rank within max_load_ratio of the mean load",
        code="load_limit",
        where=RATIO,
        required=ratio,
        available=case.problem.search.max_load_ratio,
        relaxation=Relaxation(
            RATIO, ratio, proven=proven and only, enough=(proven if enough is None else enough) and only
        ),
    )


def _budget_error(case: Case, needed: int, budget: int, proved: bool) -> InfeasibleError:
    """More experts have to move than may."""
    search, expert_bytes = case.problem.search, case.problem.costs.expert_bytes
    field, required, available = "search.max_moved_experts", float(needed), float(budget)
    value: float = needed
    by_count = search.max_moved_experts is not None and search.max_moved_experts == budget
    if not by_count and expert_bytes is not None and search.max_moved_bytes is not None:
        field, required, available = "search.max_moved_bytes", needed * expert_bytes, search.max_moved_bytes
        value = required
    return InfeasibleError(
        f"keeping max_load_ratio moves {needed} expert{'' if needed == 1 else 's'} or more, the budget allows {budget}",
        code="move_budget",
        where=field,
        required=required,
        available=available,
        relaxation=Relaxation(field, value, proven=proved, enough=proved),
    )
