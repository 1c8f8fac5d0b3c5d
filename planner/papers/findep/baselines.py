"""What simpler rules give on the same problem (page, "Baselines"): same costs, memory, launcher rules, limit and box.

Each is tuned to its own best setting and scored by replay. A rule that the launcher does not start, or that meets no
limit, has no objective. Where shared experts are folded into attention a transfer waits for both: that is the order
ASAS with later starts, so a folded schedule is a solution of the problem itself, and the check judges it.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.errors import LimitError
from planner.paper import Baseline
from planner.papers.findep.folded import best_folded, folded_solution, ruled
from planner.papers.findep.problem import FindepProblem, Order
from planner.papers.findep.scan import free_order_bound, scan
from planner.papers.findep.schedule import build_solution
from planner.papers.findep.solution import FindepSolution
from planner.papers.findep.space import Decision
from planner.units import percent, seconds
from solvers.report import Limits

Found = Baseline[FindepSolution]

ORDERED_LAYERS = 2
"""Layers that the free-order reference orders freely."""


def baselines(problem: FindepProblem, limits: Limits) -> list[Found]:
    """All baselines in the order of the page, then how far the plan's order is from the best of any."""
    most = problem.search.max_r1
    bound = free_order_bound(problem)
    return [
        _folded(problem, "naive", [1], bound),
        _folded(problem, "pppipe", range(1, most + 1), bound),
        _ruled(problem, bound),
        _folded(problem, "dbo2", [2], bound),
        _one_order(problem, "AASS"),
        _one_order(problem, "ASAS"),
        _free_order(problem, limits),
    ]


def _folded(problem: FindepProblem, name: str, micro_batches: Sequence[int], bound: float) -> Found:
    decision = best_folded(problem, micro_batches)
    if isinstance(decision, str):
        return Baseline(name, None, decision, feasible=False)
    return _written(problem, name, decision, _setting(problem, decision), bound)


def _written(problem: FindepProblem, name: str, decision: Decision, note: str, bound: float) -> Found:
    solution = folded_solution(problem, decision, bound)
    if solution is None:
        note += "; search.orders has no order to write it down in"
    return Baseline(name, decision.objective, note, solution)


def _ruled(problem: FindepProblem, bound: float) -> Found:
    name = "pppipe_rule"
    rule = ruled(problem)
    if isinstance(rule, str):
        return Baseline(name, None, rule, feasible=False)
    decision = rule.decision
    replayed = f"its own estimate is {seconds(rule.estimate_s)}, replay takes {seconds(decision.makespan_s)}"
    capped = f"; it asks for r1={rule.asked_r1}" if rule.asked_r1 != decision.r1 else ""
    note = f"{_setting(problem, decision)}: {replayed}{capped}"
    return _written(problem, name, decision, note, bound)


def _one_order(problem: FindepProblem, order: Order) -> Found:
    name = f"{order.lower()}_only"
    if order not in problem.search.orders:
        return Baseline(name, None, "search.orders leaves it out", feasible=False)
    search = problem.search.model_copy(update={"orders": (order,)})
    scanned = scan(problem.model_copy(update={"search": search}))
    if scanned.best is None:
        return Baseline(name, None, "no setting fits in this order", feasible=False)
    solution = build_solution(problem, scanned.best, scanned.free_order_bound)
    return Baseline(name, solution.objective, _setting(problem, scanned.best), solution)


def _free_order(problem: FindepProblem, limits: Limits) -> Found:
    """A note alone: what any order of the tasks does on the plan's first layers has no place in the problem's form."""
    return Baseline("free_order", None, _free_order_note(problem, limits))


def _free_order_note(problem: FindepProblem, limits: Limits) -> str:
    # Only here: the reference loads a solver, which the other baselines do without.
    from planner.papers.findep.formulation import free_order, too_large

    plan = scan(problem).best
    if plan is None:
        return "no plan to compare with"
    layers = min(ORDERED_LAYERS, problem.num_layers)
    if reason := too_large(layers, plan.r1, plan.r2):
        return f"not asked: {reason}"
    split = problem.splits[plan.split]
    try:
        found = free_order(problem, split, plan.m_a, plan.r1, plan.r2, layers, limits, plan.order)
    except LimitError as error:
        return f"not answered: {error.message}"
    where = f"first {layers} layers" if layers > 1 else "first layer"
    apart = percent(found.of_order_s / found.makespan_s - 1)
    proof = "proved" if found.proved else f"proved only that none is below {seconds(found.bound_s)}"
    best, own = seconds(found.makespan_s), seconds(found.of_order_s)
    return f"best of any order on the {where}: {best}, this plan's order {own} there: {apart} apart, {proof}"


def _setting(problem: FindepProblem, decision: Decision) -> str:
    parts = [f"m_a={decision.m_a}, r1={decision.r1}, r2={decision.r2}"]
    if len(problem.splits) > 1:
        split = problem.splits[decision.split]
        parts.append(f"{split.attention_gpus} attention and {split.expert_gpus} expert GPUs")
    return " on ".join(parts)
