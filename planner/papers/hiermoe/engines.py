"""The methods of the paper: every layer placed on its own, a budget of moves shared over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

from planner.errors import BadInputError
from planner.papers.hiermoe import layer_methods
from planner.papers.hiermoe.budget import move_budget
from planner.papers.hiermoe.decision import Decision, solution_of
from planner.papers.hiermoe.exact.reference import is_small
from planner.papers.hiermoe.exchange.tables import moved_count
from planner.papers.hiermoe.infeasibility import diagnose, within_limits
from planner.papers.hiermoe.instance import Case, LayerCase, compile_case
from planner.papers.hiermoe.layer_methods import AUTO_SHARE, Job, at_point, at_table
from planner.papers.hiermoe.layer_processes import each_layer
from planner.papers.hiermoe.migration import Option, shared
from planner.papers.hiermoe.problem import HiermoeProblem
from planner.papers.hiermoe.solution import HiermoeSolution
from planner.papers.hiermoe.swaps.move_curve import CurvePoint
from solvers.report import Limits, Report, Status

NO_GAP = 1e-9
"""A relative gap at or below this counts as none."""


@dataclass(frozen=True)
class Method:
    """How a method places a layer, and what moving fewer experts costs it; ``exact`` overrides the problem's."""

    place: Callable[[Case, LayerCase, Job], Decision]
    curve: Callable[[Case, LayerCase, Job], list[CurvePoint]]
    exact: str | None = None


METHODS = {
    "search": Method(layer_methods.search_layer, layer_methods.layer_curve),
    "exact": Method(layer_methods.search_layer, layer_methods.layer_curve, "always"),
    "one_swap": Method(layer_methods.one_swap_layer, layer_methods.one_swap_curve, "never"),
}


def solve(problem: HiermoeProblem, method: str | None, limits: Limits) -> tuple[HiermoeSolution, Report]:
    """Place every layer by a method, by default ``search``; more than one worker changes the time alone.

    Raises InfeasibleError (replicas_exceed_ranks, expert_bytes_exceed_memory, load_limit, move_budget), LimitError
    (limits_unproved, exact_too_large, time_limit), and BadInputError for ``one_swap`` with redundant slots.
    """
    name = method or "search"
    diagnose(problem)
    case = compile_case(problem)
    if name == "one_swap" and case.P > case.E:
        raise BadInputError("the paper's swap is of experts with one copy each", code="out_of_range", where="--method")
    how = METHODS[name]
    jobs = [_job(case, how, limits)] * len(case.layers)
    budget = move_budget(problem)
    shared_out = budget is not None and 0 < budget < len(case.layers) * case.P
    if budget == 0:
        decisions = [_only_choice(case, layer) for layer in case.layers]
    elif budget is None or not shared_out:
        decisions = each_layer(how.place, case, jobs, limits.workers, limits.progress)
    else:
        decisions = _within_budget(case, how, jobs, budget, limits)
    decisions = _within_limits(case, decisions, budget, limits)
    solution = solution_of(case, decisions)
    return solution, _report(name, solution, decisions, bounded=not shared_out or len(decisions) == 1)


def _job(case: Case, how: Method, limits: Limits) -> Job:
    exact = how.exact or case.problem.search.exact
    each = replace(limits, progress=None, workers=1)
    if exact == "auto":
        small = sum(is_small(case, layer) for layer in case.layers)
        each = replace(each, effort=limits.effort * AUTO_SHARE * min(1.0, 4 / max(small, 1)))
    return Job(exact, each)


def _only_choice(case: Case, layer: LayerCase) -> Decision:
    """Where nothing may move: the placement of now, and that it takes what it takes."""
    stay = at_table(case, layer, layer.current)
    return replace(stay, bound_s=stay.objective_s, bound_kind="exhaustive")


def _within_budget(case: Case, how: Method, jobs: Sequence[Job], budget: int, limits: Limits) -> list[Decision]:
    """The budget split by what each layer reaches for it, then layers placed again with their part and what is left.

    Those that keep a point of their curve all the same, because others take what was left, are placed once more.
    """
    curves = each_layer(how.curve, case, jobs, limits.workers, limits.progress)
    reached: list[list[CurvePoint | Decision]] = [list(curve) for curve in curves]
    again = list(range(len(case.layers)))
    for _ in range(2):
        taken = shared(_options(case, reached), budget)
        if taken is None:
            return [at_table(case, layer, layer.current) for layer in case.layers]
        moved = [options[number].moved for options, number in zip(_options(case, reached), taken, strict=True)]
        again = [n for n in again if isinstance(reached[n][taken[n]], CurvePoint)]
        spare = budget - sum(moved)
        parts = [replace(jobs[n], max_moved=moved[n] + spare) for n in again]
        some = replace(case, layers=tuple(case.layers[n] for n in again))
        for n, decision in zip(again, each_layer(how.place, some, parts, limits.workers, limits.progress), strict=True):
            if decision.within_load_limit:
                # Before the points: of equal ones the placed one.
                reached[n].insert(0, decision)
    taken = shared(_options(case, reached), budget) or []
    return [
        _with_bound(case, layer, every[number], every)
        for layer, every, number in zip(case.layers, reached, taken, strict=True)
    ]


def _with_bound(
    case: Case, layer: LayerCase, one: CurvePoint | Decision, every: Sequence[CurvePoint | Decision]
) -> Decision:
    """The decision for what was taken, with the best bound proved of the layer within the moves that it could have."""
    taken = at_point(case, layer, one) if isinstance(one, CurvePoint) else one
    decided = [other for other in every if isinstance(other, Decision)]
    proved = [(other.bound_s, other.bound_kind) for other in decided if other.bound_s is not None]
    if not proved:
        return taken
    bound_s, kind = max(proved)
    return replace(taken, bound_s=bound_s, bound_kind=kind)


def _options(case: Case, reached: Sequence[Sequence[CurvePoint | Decision]]) -> list[list[Option]]:
    return [
        [Option(moved_count(layer.current, one.table, case.G), one.objective_s) for one in every]
        for layer, every in zip(case.layers, reached, strict=True)
    ]


def _within_limits(case: Case, decisions: list[Decision], budget: int | None, limits: Limits) -> list[Decision]:
    """Where the search left a load above the limit: a placement that keeps it, or the proof that none does."""
    if all(decision.within_load_limit for decision in decisions):
        return decisions
    tables = within_limits(case, limits)
    mended = [
        decision if decision.within_load_limit else at_table(case, layer, table)
        for layer, decision, table in zip(case.layers, decisions, tables, strict=True)
    ]
    moved = sum(
        moved_count(layer.current, decision.table, case.G) for layer, decision in zip(case.layers, mended, strict=True)
    )
    if budget is not None and moved > budget:
        return [at_table(case, layer, table) for layer, table in zip(case.layers, tables, strict=True)]
    return mended


def _report(name: str, solution: HiermoeSolution, decisions: Sequence[Decision], *, bounded: bool) -> Report:
    reached = solution.objective_s
    bounds = [decision.bound_s for decision in decisions if decision.bound_s is not None]
    bound, kind = None, None
    if bounded and len(bounds) == len(decisions):
        bound = min(math.fsum(bounds), reached)
        kind = "exhaustive" if all(decision.bound_kind == "exhaustive" for decision in decisions) else "solver"
    proved = bound is not None and reached - bound <= NO_GAP * abs(reached)
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    return Report(status, "layer-placement", name, version("numpy"), reached, bound, kind)
