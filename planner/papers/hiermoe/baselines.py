"""What simpler published rules give on the same problem (page, "Baselines"), all layers, by the same evaluator.

A rule that places experts and prices the exchange as equations 1 to 6 do has a solution, which the check judges. The
two that count assignments have a note instead: equation 3 sends a token once, so no plan means what they do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from planner.paper import Baseline
from planner.papers.hiermoe.budget import load_limit, move_budget
from planner.papers.hiermoe.decision import Decision, solution_of
from planner.papers.hiermoe.exchange.tables import ascending, crowded_slots, moved_count
from planner.papers.hiermoe.exchange.time import (
    a2a_seconds,
    best_dimension,
    layer_objective,
    objective_seconds,
    rank_loads,
)
from planner.papers.hiermoe.instance import Case, LayerCase, Table, compile_case, contiguous
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.replicas.eplb_tables import eplb_tables
from planner.papers.hiermoe.rivals import one_swap, smart_moe_table
from planner.papers.hiermoe.solution import HiermoeSolution
from solvers.report import Limits

Found = Baseline[HiermoeSolution]
Rule = Callable[[LayerCase], tuple[Table, int]]
"""A layer's table and dimension."""


def baselines(problem: HiermoeProblem, limits: Limits) -> list[Found]:
    """All baselines in the order of the page. Those of one copy an expert are left out where slots are redundant."""
    del limits
    case = compile_case(problem)
    found = [_counted_by_assignment(case, "flat", 1)]
    if len(case.U) > 1:
        found.append(_counted_by_assignment(case, "h2", 2))
    spread = contiguous(case.E, case.P)
    for d in range(1, len(case.U) + 1):
        found.append(_in_order(case, spread, d))
    if case.P == case.E:
        found.append(_placed(case, "one_swap", lambda layer: one_swap(case, layer), "one swap, current placement"))
        if len(case.U) > 1:
            found.append(_placed(case, "hd2_smart_moe", lambda layer: (smart_moe_table(case, layer), 2), "load alone"))
    return found + [_eplb(case, rule) for rule in ("hierarchical", "global")]


def _counted_by_assignment(case: Case, name: str, d: int) -> Found:
    """Experts in order, a token sent once for every expert it selects."""
    table = contiguous(case.E, case.P)
    decisions = []
    for layer in case.layers:
        exchange_s, _ = a2a_seconds(case, layer, table, d, deduplicated=False)
        decisions.append(Decision(table, d, objective_seconds(case, exchange_s, rank_loads(case, layer, table))))
    total = math.fsum(decision.objective_s for decision in decisions)
    note = f"experts in order, d={d}, a token sent once for every expert: no deduplication"
    refused = _refused(case, decisions)
    return Baseline(name, total, note if refused is None else f"{note}; {refused}", feasible=refused is None)


def _in_order(case: Case, table: Table, d: int) -> Found:
    return _placed(case, f"hd{d}", lambda _layer: (table, d), "experts in order")


def _eplb(case: Case, rule: str) -> Found:
    def place(layer: LayerCase) -> tuple[Table, int]:
        table = eplb_tables(case, layer)[rule]
        return table, best_dimension(case, layer, table)[0]

    return _placed(case, f"eplb_{rule}", place, "load alone, best d")


def _placed(case: Case, name: str, rule: Rule, note: str) -> Found:
    """A rule's placement as a solution, unless the problem refuses it: then why."""
    decisions = []
    for layer in case.layers:
        table, d = rule(layer)
        decisions.append(Decision(ascending(table, case.G), d, layer_objective(case, layer, table, d)))
    total = math.fsum(decision.objective_s for decision in decisions)
    refused = _refused(case, decisions)
    if refused is not None:
        return Baseline(name, total, f"{note}; {refused}", feasible=False)
    return Baseline(name, total, note, solution_of(case, decisions))


def _refused(case: Case, decisions: list[Decision]) -> str | None:
    """What of the problem a placement breaks."""
    tables = [decision.table for decision in decisions]
    allowed = case.dimensions
    if any(decision.dimension not in allowed for decision in decisions):
        return "search.dimensions leaves it out"
    crowded = sum(len(crowded_slots(table, case.G)) for table in tables)
    if crowded and case.problem.forbid_same_rank_replicas:
        many = "1 copy shares" if crowded == 1 else f"{crowded} copies share"
        return f"not exportable: {many} a rank with another of the same expert"
    budget = move_budget(case.problem)
    layers = list(zip(case.layers, tables, strict=True))
    moved = sum(moved_count(layer.current, table, case.G) for layer, table in layers)
    if budget is not None and moved > budget:
        return f"moves {moved} experts, the budget allows {budget}"
    for layer, table in layers:
        loads = rank_loads(case, layer, table)
        if loads.max() > load_limit(case.problem, float(loads.sum())):
            return f"layer {layer.layer_id} is above max_load_ratio"
    return None
