"""What there is to see of a HierMoE plan: time by hop, layers, the slowest one's hops and front, the first moves."""

from __future__ import annotations

import math
from collections.abc import Iterable

from planner.papers.hiermoe.cautions import load_ratios
from planner.papers.hiermoe.exchange.time import best_dimension, rank_loads
from planner.papers.hiermoe.instance import compile_case
from planner.papers.hiermoe.presentation import compute_s
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.replicas.eplb_tables import eplb_tables
from planner.papers.hiermoe.solution import HiermoeSolution, HopUse, LayerPlacement, Point, SwapOptimal
from planner.units import in_bytes, seconds
from planner.view import Bar, Bars, Segment, Table, View

_LAYERS_SHOWN = 16
_MOVES_SHOWN = 12
COMPUTE = "experts"
"""The part of a layer's objective that is the busiest rank's experts, in pictures."""
SAME = 1e-9
"""Figures so near, relative, are of one point."""


def view(problem: HiermoeProblem, solution: HiermoeSolution) -> View:
    """Time of every layer by hop, the hops of the slowest, the front where one was met, and the first moves."""
    slowest = max(solution.layers, key=lambda layer: layer.objective_s)
    return View(
        (
            _time_bars(problem, solution),
            _layer_table(problem, solution),
            _hop_table(slowest),
            *_front_table(problem, slowest),
            *_move_table(problem, solution),
        )
    )


def _time_bars(problem: HiermoeProblem, solution: HiermoeSolution) -> Bars:
    names = sorted({_hop_name(hop) for layer in solution.layers for hop in layer.hops}, key=_hop_order)
    kinds = [*names, *([COMPUTE] if problem.costs.compute_s_per_assignment else [])]
    bars = []
    for layer in solution.layers:
        amounts = {_hop_name(hop): problem.objective.a2a_multiplier * hop.time_s for hop in layer.hops}
        amounts[COMPUTE] = compute_s(problem, layer)
        segments = tuple(Segment(kind, amounts[kind]) for kind in kinds if amounts.get(kind))
        bars.append(Bar(f"layer {layer.layer_id}", segments, f"{seconds(layer.objective_s)} d={layer.dimension}"))
    return Bars("time of an exchange and its experts", tuple(bars), "s", tuple(kinds))


def _hop_name(hop: HopUse) -> str:
    return "flat" if hop.kind == "flat" else f"{hop.kind}-{hop.level}"


def _hop_order(name: str) -> tuple[int, str]:
    return ("flat", "inter", "intra").index(name.split("-")[0]), name


def _layer_table(problem: HiermoeProblem, solution: HiermoeSolution) -> Table:
    case = compile_case(problem)
    now = {layer.layer_id: best_dimension(case, layer, layer.current)[1] for layer in case.layers}
    ratios = load_ratios(problem, solution)
    rows = tuple(
        (
            str(layer.layer_id),
            str(layer.dimension),
            seconds(now[layer.layer_id]),
            seconds(layer.objective_s),
            f"{ratios[layer.layer_id]:.3f}",
            str(layer.moved_experts),
            _claim(layer.swap_optimal),
        )
        for layer in solution.layers[:_LAYERS_SHOWN]
    )
    more = len(solution.layers) - _LAYERS_SHOWN
    title = "layers" if more <= 0 else f"layers, the first {_LAYERS_SHOWN} of {len(solution.layers)}"
    return Table(title, ("layer", "d", "now", "planned", "max/mean", "moved", "swap-optimal"), rows)


def _claim(swap_optimal: SwapOptimal) -> str:
    if isinstance(swap_optimal, bool):
        return "yes" if swap_optimal else "-"
    return swap_optimal


def _hop_table(layer: LayerPlacement) -> Table:
    rows = tuple(
        (_hop_name(hop), str(hop.participants), f"{hop.peak_tokens:,.6g}", in_bytes(hop.bytes), seconds(hop.time_s))
        for hop in layer.hops
    )
    title = f"hops of layer {layer.layer_id}, the slowest"
    return Table(title, ("hop", "participants", "peak tokens", "padded bytes", "time"), rows)


def _front_table(problem: HiermoeProblem, layer: LayerPlacement) -> Iterable[Table]:
    """The points of the front that differ in what is shown, and the planned one with the rule that took it."""
    if not layer.front:
        return
    rows: dict[tuple[str, ...], str] = {}
    for point in layer.front:
        cells = _figures(point.dimension, point.peak_load, point.a2a_s, point.objective_s)
        note = f"planned: {_rule(problem, layer)}" if _is_planned(point, layer) else ""
        rows[cells] = rows.get(cells) or note
    alike = len(layer.front) - len(rows)
    columns = ("d", "busiest rank", "exchange", "objective", "")
    title = f"front of layer {layer.layer_id}" + (f", {alike} more alike" if alike > 0 else "")
    yield Table(title, columns, tuple((*cells, note) for cells, note in rows.items()))


def _figures(dimension: int, peak_load: float, a2a_s: float, objective_s: float) -> tuple[str, ...]:
    return str(dimension), f"{peak_load:,.6g} assignments", seconds(a2a_s), seconds(objective_s)


def _is_planned(point: Point, layer: LayerPlacement) -> bool:
    figures = ((point.peak_load, layer.peak_assignments), (point.a2a_s, layer.a2a_s))
    return point.dimension == layer.dimension and all(math.isclose(*pair, rel_tol=SAME) for pair in figures)


def _rule(problem: HiermoeProblem, layer: LayerPlacement) -> str:
    """Why this point of the front (page, "Replicas")."""
    if len(layer.front or ()) == 1:
        return "nothing met has less load or a quicker exchange"
    within = "" if problem.search.max_load_ratio is None else " within search.max_load_ratio"
    if problem.objective.compute_multiplier * problem.costs.compute_s_per_assignment > 0:
        return f"least objective{within}"
    case = compile_case(problem)
    of_layer = next(each for each in case.layers if each.layer_id == layer.layer_id)
    least = min(float(rank_loads(case, of_layer, table).max()) for table in eplb_tables(case, of_layer).values())
    if layer.peak_assignments <= least * (1 + SAME):
        return f"quickest{within} with no rank busier than EPLB's"
    quickest = layer.a2a_s <= min(point.a2a_s for point in layer.front or ()) * (1 + SAME)
    among = within if quickest else f"{within} with no rank busier than the quickest baseline's"
    return f"quickest{among}; none as even as EPLB's is as quick as the baselines"


def _move_table(problem: HiermoeProblem, solution: HiermoeSolution) -> Iterable[Table]:
    moves = [(layer.layer_id, move) for layer in solution.layers for move in layer.moves]
    if not moves:
        return
    slots = problem.slots // problem.topology.gpus
    rows = tuple(
        (
            str(layer_id),
            str(move.expert),
            "-" if move.from_slot is None else f"{move.from_slot // slots} ({move.from_slot})",
            f"{move.to_slot // slots} ({move.to_slot})",
            "" if move.bytes is None else in_bytes(move.bytes),
        )
        for layer_id, move in moves[:_MOVES_SHOWN]
    )
    more = len(moves) - _MOVES_SHOWN
    title = "moves" if more <= 0 else f"moves, the first {_MOVES_SHOWN} of {len(moves)}"
    yield Table(title, ("layer", "expert", "from rank (slot)", "to rank (slot)", "bytes"), rows)
