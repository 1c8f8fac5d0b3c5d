"""What changes against the current placement, counted again: experts that come to a rank, their bytes, and swaps."""

from __future__ import annotations

from collections import Counter

from planner.findings import Findings
from planner.papers.hiermoe.checks.counts import TOLERANCE, Ints, agree
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.solution import LayerPlacement
from planner.validation import shown_value

Arrivals = Counter[tuple[int, int]]
"""How many copies of (rank, expert) a placement has that the current one has not."""


def arrivals(problem: HiermoeProblem, current: Ints, table: Ints) -> Arrivals:
    """Experts that come to a rank where they are not now. Slots within a rank do not matter."""
    G = problem.topology.gpus
    ranks = [slot * G // len(table) for slot in range(len(table))]
    now = Counter(zip(ranks, current.tolist(), strict=True))
    return Counter(zip(ranks, table.tolist(), strict=True)) - now


def check_moves(
    problem: HiermoeProblem, layer: LayerPlacement, current: Ints, table: Ints, where: str, found: Findings
) -> int:
    """How many experts move in a layer; what it states of them is compared."""
    coming = arrivals(problem, current, table)
    moved, expert_bytes = coming.total(), problem.costs.expert_bytes
    if layer.moved_experts != moved:
        message = f"stated {shown_value(layer.moved_experts)}, recomputed {moved}"
        found.add("moved_experts_mismatch", message, f"{where}.moved_experts")
    expected = None if expert_bytes is None else moved * expert_bytes
    if not _same(layer.moved_bytes, expected):
        message = f"stated {layer.moved_bytes!r}, recomputed {expected!r}"
        found.add("moved_bytes_mismatch", message, f"{where}.moved_bytes")
    if layer.moves:
        _check_list(problem, layer, current, table, coming, where, found)
    return moved


def _check_list(
    problem: HiermoeProblem,
    layer: LayerPlacement,
    current: Ints,
    table: Ints,
    coming: Arrivals,
    where: str,
    found: Findings,
) -> None:
    G, P = problem.topology.gpus, len(table)
    known = set(current.tolist())
    left, taken = Counter(coming), set()
    for number, move in enumerate(layer.moves):
        place = f"{where}.moves[{number}]"
        if move.to_slot >= P or (move.from_slot is not None and move.from_slot >= P):
            found.add("moves_mismatch", f"expected slots below {P}", place)
            continue
        arrival = (move.to_slot * G // P, int(table[move.to_slot]))
        if arrival[1] != move.expert or move.to_slot in taken or not left[arrival]:
            message = f"expert {shown_value(move.expert)} does not come to slot {move.to_slot}"
            found.add("moves_mismatch", message, place)
            continue
        taken.add(move.to_slot)
        left[arrival] -= 1
        if (move.from_slot is None) == (move.expert in known):
            held = "is held now" if move.expert in known else "is held nowhere now"
            found.add("moves_mismatch", f"expert {move.expert} {held}, stated from_slot {move.from_slot}", place)
        elif move.from_slot is not None and current[move.from_slot] != move.expert:
            found.add("moves_mismatch", f"slot {move.from_slot} does not hold expert {move.expert} now", place)
        if not _same(move.bytes, problem.costs.expert_bytes):
            message = f"stated {move.bytes!r}, an expert has {problem.costs.expert_bytes!r} bytes"
            found.add("moves_mismatch", message, f"{place}.bytes")
    if missing := left.total():
        found.add("moves_mismatch", f"{missing} experts come to a rank without a move", f"{where}.moves")


def check_budget(problem: HiermoeProblem, moved: int, found: Findings) -> None:
    """The move budgets, which all layers share."""
    search, expert_bytes = problem.search, problem.costs.expert_bytes
    if search.max_moved_experts is not None and moved > search.max_moved_experts:
        message = f"{moved} experts move, expected at most {search.max_moved_experts}"
        found.add("moved_over_budget", message, "layers")
    if search.max_moved_bytes is not None and expert_bytes is not None:
        moved_bytes = moved * expert_bytes
        if moved_bytes > search.max_moved_bytes * (1 + TOLERANCE):
            message = f"{moved_bytes:.17g} bytes move, expected at most {search.max_moved_bytes:.17g}"
            found.add("moved_over_budget", message, "layers")


def check_swaps(
    problem: HiermoeProblem, layer: LayerPlacement, current: Ints, table: Ints, where: str, found: Findings
) -> None:
    """Whether the swaps, in order, lead from the current placement to the table, slots within a rank aside."""
    if layer.swaps is None:
        return
    code, place = "swaps_do_not_reach_placement", f"{where}.swaps"
    G, E = problem.topology.gpus, problem.num_experts
    if len(table) != E:
        found.add(code, "swaps of experts are defined without redundant slots only", place)
        return
    at = {expert: slot * G // E for slot, expert in enumerate(current.tolist())}
    for number, pair in enumerate(layer.swaps):
        if len(pair) != 2 or not all(0 <= expert < E for expert in pair):
            found.add(code, f"expected two experts below {E}", f"{place}[{number}]")
            return
        one, other = pair
        at[one], at[other] = at[other], at[one]
    astray = [expert for slot, expert in enumerate(table.tolist()) if at[expert] != slot * G // E]
    if astray:
        rank = at[astray[0]]
        message = f"they leave expert {astray[0]} on rank {rank}, {len(astray)} experts in all elsewhere than the table"
        found.add(code, message, place)


def _same(stated: float | None, expected: float | None) -> bool:
    return stated is expected if stated is None or expected is None else agree(stated, expected)
