"""What people and programs read off a HierMoE plan: where the time goes, what moves, how even the ranks are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from planner.json_text import Json
from planner.paper import SOURCES, MemoryRow, Warned
from planner.papers.hiermoe.exchange.time import best_dimension
from planner.papers.hiermoe.instance import Case, compile_case
from planner.papers.hiermoe.problem import HiermoeProblem, LinkCost
from planner.papers.hiermoe.routing.routed import Loads, Routed, Tokens
from planner.papers.hiermoe.solution import HiermoeSolution, HopUse, LayerPlacement, SwapOptimal
from planner.units import in_bytes, seconds
from planner.view import Bar, Bars, Segment, Table, View

_LAYERS_SHOWN = 16
_MOVES_SHOWN = 12
COMPUTE = "experts"
"""The part of a layer's objective that is the busiest rank's experts, in pictures."""
UNEVEN = 1.5
"""Busiest over mean load above which a placement that was not asked to balance is worth a warning."""


def shares(problem: HiermoeProblem, solution: HiermoeSolution) -> dict[str, float]:
    """Fraction of the objective's seconds by the source of the coefficient behind them."""
    busy = dict.fromkeys(SOURCES, 0.0)
    for layer in solution.layers:
        for hop in layer.hops:
            _add(busy, problem.objective.a2a_multiplier * hop.time_s, link_of(problem, hop).sources)
        _add(busy, compute_s(problem, layer), problem.costs.compute_sources)
    total = sum(busy.values())
    # Nothing costs anything: then all of it is what the user says.
    return {source: value / total if total else float(source == "stated") for source, value in busy.items()}


def _add(busy: dict[str, float], amount_s: float, sources: object) -> None:
    if sources is None:
        busy["stated"] += amount_s
    else:
        for source in SOURCES:
            busy[source] += amount_s * float(getattr(sources, source))


def link_of(problem: HiermoeProblem, hop: HopUse) -> LinkCost:
    """The link that prices a hop."""
    links = problem.costs.links
    if hop.kind == "flat":
        return links.flat
    return (links.inter if hop.kind == "inter" else links.intra)[hop.level - 1]


def compute_s(problem: HiermoeProblem, layer: LayerPlacement) -> float:
    """The busiest rank's part of a layer's objective (eq. 5) [s]."""
    return problem.objective.compute_multiplier * problem.costs.compute_s_per_assignment * layer.peak_assignments


def memory(problem: HiermoeProblem, solution: HiermoeSolution) -> list[MemoryRow]:
    """Expert weights of all layers on a GPU, alike on all; none where the problem does not say both amounts."""
    del solution
    each, capacity = problem.costs.expert_bytes, problem.topology.expert_memory_bytes_per_gpu
    if each is None or capacity is None:
        return []
    experts = problem.slots // problem.topology.gpus * len(problem.layers)
    return [MemoryRow("each GPU", "experts", experts * each, float(capacity))]


def warnings(problem: HiermoeProblem, solution: HiermoeSolution) -> list[Warned]:
    """no_tokens, loads_only, uneven_ranks, not_swap_optimal."""
    found = []
    ratios = load_ratios(problem, solution)
    empty = [layer.layer_id for layer in solution.layers if layer.peak_assignments == 0]
    if empty:
        found.append(Warned("no_tokens", f"no token passes {_named(empty)}: any placement is as good there"))
    loads = [layer.layer_id for layer in solution.layers if layer.routing_detail == "loads"]
    if loads:
        found.append(
            Warned(
                "loads_only",
                f"{_named(loads)}: loads do not say which experts are chosen together, so experts are taken to be "
                "chosen independently; record token-level routing to plan what is exchanged",
            )
        )
    uneven = [layer for layer, ratio in ratios.items() if ratio > UNEVEN]
    if uneven and problem.costs.compute_s_per_assignment == 0 and problem.search.max_load_ratio is None:
        found.append(
            Warned(
                "uneven_ranks",
                f"{_named(uneven)}: the busiest rank has up to {max(ratios.values()):.2f} times the mean load, which "
                "nothing here charges: state costs.compute_s_per_assignment, or search.max_load_ratio",
            )
        )
    search = problem.search
    free = problem.redundant_slots == 0 and search.max_moved_experts is None and search.max_moved_bytes is None
    left = [layer.layer_id for layer in solution.layers if layer.swap_optimal is False]
    if left and free:
        found.append(Warned("not_swap_optimal", f"{_named(left)}: a swap that helps may be left (search.max_swaps)"))
    return found


def _named(layers: Sequence[int]) -> str:
    shown = ", ".join(map(str, layers[:6])) + (f" and {len(layers) - 6} more" if len(layers) > 6 else "")
    return f"layer{'s' if len(layers) > 1 else ''} {shown}"


def load_ratios(problem: HiermoeProblem, solution: HiermoeSolution) -> dict[int, float]:
    """Load of the busiest rank over the mean, by layer id; 1 where nothing is routed."""
    case = compile_case(problem)
    means = {layer.layer_id: assignments(case, layer.routed) / case.G for layer in case.layers}
    return {
        layer.layer_id: layer.peak_assignments / mean if (mean := means[layer.layer_id]) else 1.0
        for layer in solution.layers
    }


def assignments(case: Case, routed: Routed) -> float:
    """(token, expert) assignments of a layer over all ranks."""
    if isinstance(routed, Tokens):
        return float(routed.expert_ids.size)
    if isinstance(routed, Loads):
        return float(routed.load.sum())
    return float(routed.tokens_per_rank * case.G * case.K)


def summary(problem: HiermoeProblem, solution: HiermoeSolution) -> list[str]:
    """Lines about the placement."""
    layers = solution.layers
    ratios = load_ratios(problem, solution)
    dimensions = Counter(layer.dimension for layer in layers)
    used = ", ".join(f"{_dimension(d, problem)} in {_many(n, 'layer')}" for d, n in sorted(dimensions.items()))
    redundant = f" + {problem.redundant_slots} redundant slots" if problem.redundant_slots else ""
    moved = sum(layer.moved_experts for layer in layers)
    lines = [
        f"{_many(len(layers), 'layer')} of {problem.num_experts} experts, {problem.top_k} a token{redundant}, on "
        f"{_many(problem.topology.gpus, 'GPU')}",
        f"exchange: {used}",
        *_before(problem, solution),
        f"busiest rank over mean load: {max(ratios.values()):.3f} at worst",
    ]
    moved_bytes = [layer.moved_bytes for layer in layers if layer.moved_bytes is not None]
    carried = f", {in_bytes(sum(moved_bytes))}" if moved_bytes else ""
    lines.append(f"moves {_many(moved, 'expert')}{carried} from the current placement")
    return lines


def _before(problem: HiermoeProblem, solution: HiermoeSolution) -> list[str]:
    """How the placement compares with the current one, both at their best dimension."""
    case = compile_case(problem)
    now_s = sum(best_dimension(case, layer, layer.current)[1] for layer in case.layers)
    if not now_s:
        return []
    return [f"the current placement takes {seconds(now_s)}, {now_s / solution.objective_s:.3f} times as long"]


def _dimension(d: int, problem: HiermoeProblem) -> str:
    if d == 1:
        return "flat (d=1)"
    groups = "/".join(str(groups) for groups in problem.topology.level_groups[1:d])
    return f"d={d} over {groups} groups"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def decisions(solution: HiermoeSolution) -> dict[str, Json]:
    """Per layer the dimension, and which experts sit on which slots."""
    return {
        "layers": {
            str(layer.layer_id): {
                "dimension": layer.dimension,
                "slots": {str(slot): expert for slot, expert in enumerate(layer.physical_to_logical)},
            }
            for layer in solution.layers
        }
    }


def metrics(solution: HiermoeSolution) -> dict[str, Json]:
    """The recomputable figures."""
    return {
        "objective_s": solution.objective_s,
        "moved_experts": sum(layer.moved_experts for layer in solution.layers),
        "layers": {
            str(layer.layer_id): {
                "objective_s": layer.objective_s,
                "a2a_s": layer.a2a_s,
                "peak_assignments": layer.peak_assignments,
                "moved_experts": layer.moved_experts,
                "moved_bytes": layer.moved_bytes,
            }
            for layer in solution.layers
        },
    }


def view(problem: HiermoeProblem, solution: HiermoeSolution) -> View:
    """Time of every layer by hop, the hops of the slowest, the front where one was met, and the first moves."""
    slowest = max(solution.layers, key=lambda layer: layer.objective_s)
    return View(
        (
            _time_bars(problem, solution),
            _layer_table(problem, solution),
            _hop_table(slowest),
            *_front_table(slowest),
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


def _front_table(layer: LayerPlacement) -> Iterable[Table]:
    if not layer.front:
        return
    rows = tuple(
        (
            "*" if list(point.physical_to_logical or ()) == list(layer.physical_to_logical) else "",
            str(point.dimension),
            f"{point.peak_load:,.6g}",
            seconds(point.a2a_s),
            seconds(point.objective_s),
        )
        for point in layer.front
    )
    title = f"layer {layer.layer_id}: load against exchange, * is planned"
    yield Table(title, ("", "d", "peak load", "exchange", "objective"), rows)


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
