"""The independent check of a plan (page, "Check"), from problem and solution alone.

Nothing that planned takes part: tokens are counted again one by one, and seconds follow from the page.
"""

from __future__ import annotations

import math
from collections import Counter

from planner.findings import Findings
from planner.paper import Violation
from planner.papers.hiermoe.checks.counts import Ints, Recount, agree, recount
from planner.papers.hiermoe.checks.front import check_front
from planner.papers.hiermoe.checks.moves import arrivals, check_budget, check_moves, check_swaps
from planner.papers.hiermoe.checks.optimal import better_swap, over_ratio
from planner.papers.hiermoe.checks.table import check_decision, exceeds_memory, named
from planner.papers.hiermoe.instance import LayerCase, compile_case
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.solution import HiermoeSolution, LayerPlacement
from planner.routing.routed import Loads, Uniform, routing_digest

VIOLATIONS: tuple[str, ...] = (
    "layer_set",
    "dimension_range",
    "dimension_not_allowed",
    "slot_count",
    "expert_range",
    "expert_missing",
    "duplicate_on_rank",
    "expert_bytes_exceed_memory",
    "load_ratio_exceeded",
    "moved_over_budget",
    "hop_mismatch",
    "a2a_mismatch",
    "peak_assignments_mismatch",
    "reported_layer_objective",
    "reported_objective",
    "moved_experts_mismatch",
    "moved_bytes_mismatch",
    "moves_mismatch",
    "swaps_do_not_reach_placement",
    "not_swap_optimal",
    "routing_mismatch",
    "front_mismatch",
)
"""Every code the check can report, in the order it reports them."""


def check(problem: HiermoeProblem, solution: HiermoeSolution) -> list[Violation]:
    """Everything the solution says that the problem refutes; empty for a correct plan. At most 100 of each code.

    Figures agree within 1e-9 relative. Layers whose table cannot be used are not counted again, nor are sums over
    all layers then compared.
    """
    found = Findings()
    if (memory := exceeds_memory(problem)) is not None:
        found.add("expert_bytes_exceed_memory", memory, "layers")
    cases = {layer.layer_id: layer for layer in compile_case(problem).layers}
    usable = _check_layers(problem, solution, cases, found)
    moves = {
        place: check_moves(problem, layer, cases[layer.layer_id].current, table, f"layers.{place}", found)
        for place, (layer, table) in usable.items()
    }
    check_budget(problem, sum(moves.values()), found)
    objectives_s: list[float] = []
    for place, (layer, table) in usable.items():
        moved_elsewhere = sum(moves.values()) - moves[place]
        objectives_s.append(_check_layer(problem, layer, cases[layer.layer_id], table, moved_elsewhere, place, found))
    if len(usable) == len(cases) == len(solution.layers):
        total_s = math.fsum(objectives_s)
        if not agree(solution.objective_s, total_s):
            message = f"stated {solution.objective_s!r}, recomputed {total_s!r}"
            found.add("reported_objective", message, "objective_s")
    return found.in_order(VIOLATIONS)


def _check_layers(
    problem: HiermoeProblem, solution: HiermoeSolution, cases: dict[int, LayerCase], found: Findings
) -> dict[str, tuple[LayerPlacement, Ints]]:
    """The layers that can be counted again, with their tables, by id as messages show it."""
    stated = Counter(layer.layer_id for layer in solution.layers)
    for layer_id in sorted(cases.keys() - stated.keys()):
        found.add("layer_set", f"layer {layer_id} of the problem is missing", "layers")
    usable: dict[str, tuple[LayerPlacement, Ints]] = {}
    for layer in solution.layers:
        place = named(layer.layer_id)
        if layer.layer_id not in cases:
            found.add("layer_set", f"the problem has no layer {place}", f"layers.{place}")
        elif stated[layer.layer_id] > 1:
            found.add("layer_set", f"layer {place} is stated {stated[layer.layer_id]} times", f"layers.{place}")
        elif (table := check_decision(problem, layer, f"layers.{place}", found)) is not None:
            usable[place] = (layer, table)
    return usable


def _check_layer(
    problem: HiermoeProblem,
    layer: LayerPlacement,
    case: LayerCase,
    table: Ints,
    moved_elsewhere: int,
    place: str,
    found: Findings,
) -> float:
    """Equations 1 to 5 again; the layer's objective [s]."""
    where = f"layers.{place}"
    counted = recount(problem, case.routed, table, layer.dimension)
    if over_ratio(problem, counted):
        message = f"the busiest rank has {counted.peak_load:.10g} assignments, the mean is {counted.mean_load:.10g}"
        found.add("load_ratio_exceeded", f"{message}, at most {problem.search.max_load_ratio} times it", where)
    _check_figures(layer, counted, where, found)
    detail = "loads" if isinstance(case.routed, Loads) else "uniform" if isinstance(case.routed, Uniform) else "tokens"
    if layer.routing_detail != detail:
        found.add("routing_mismatch", f"stated {layer.routing_detail}, the problem has {detail}", where)
    if layer.routing_sha256 is not None and layer.routing_sha256 != routing_digest(case.routed):
        found.add("routing_mismatch", "the problem's tokens have another digest", f"{where}.routing_sha256")
    check_swaps(problem, layer, case.current, table, where, found)
    check_front(problem, layer, case.routed, where, found)
    if layer.swap_optimal is True:

        def allowed(other: Ints) -> bool:
            spent = Findings()
            check_budget(problem, moved_elsewhere + arrivals(problem, case.current, other).total(), spent)
            return not spent.listed

        better = better_swap(problem, case.routed, table, counted, layer.dimension, allowed)
        if better is not None:
            a, b, objective_s = better
            message = f"experts {table[a]} and {table[b]} of slots {a} and {b} swapped give {objective_s:.10g} s"
            found.add("not_swap_optimal", f"{message}, not {counted.objective_s:.10g} s", where)
    return counted.objective_s


def _check_figures(layer: LayerPlacement, counted: Recount, where: str, found: Findings) -> None:
    if layer.hops and len(layer.hops) != len(counted.steps):
        message = f"expected {len(counted.steps)} hops, got {len(layer.hops)}"
        found.add("hop_mismatch", message, f"{where}.hops")
    for number, (hop, step) in enumerate(zip(layer.hops, counted.steps, strict=False)):
        place = f"{where}.hops[{number}]"
        if (hop.kind, hop.level, hop.participants) != (step.kind, step.level, step.participants):
            message = f"expected {step.kind} {step.level} of {step.participants}"
            found.add(
                "hop_mismatch", f"{message}, got {hop.kind} {named(hop.level)} of {named(hop.participants)}", place
            )
            continue
        expected = {
            "peak_tokens": counted.peaks[number],
            "bytes": step.participants * counted.peaks[number] * counted.token_bytes,
            "time_s": counted.times_s[number],
        }
        for name, value in expected.items():
            if not agree(getattr(hop, name), value):
                message = f"stated {getattr(hop, name)!r}, recomputed {value!r}"
                found.add("hop_mismatch", message, f"{place}.{name}")
    for code, name, value in (
        ("a2a_mismatch", "a2a_s", counted.a2a_s),
        ("peak_assignments_mismatch", "peak_assignments", counted.peak_load),
        ("reported_layer_objective", "objective_s", counted.objective_s),
    ):
        if not agree(getattr(layer, name), value):
            found.add(code, f"stated {getattr(layer, name)!r}, recomputed {value!r}", f"{where}.{name}")
