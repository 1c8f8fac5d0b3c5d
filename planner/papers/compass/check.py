"""The independent check of a plan (page, section 8), from problem and solution alone.

Nothing that planned takes part: degrees, times, the best choice and the totals are computed again from the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.findings import Findings
from planner.paper import Violation
from planner.papers.compass.checks.choice import check_choices, check_switches
from planner.papers.compass.checks.explained import check_explanations
from planner.papers.compass.checks.facts import degrees, sequential_s, stages, startable, ways
from planner.papers.compass.checks.ways import Way, Ways, agree
from planner.papers.compass.problem import STRATEGIES, CompassProblem, Operator
from planner.papers.compass.solution import Choice, CompassSolution

VIOLATIONS: tuple[str, ...] = (
    "unknown_operator",
    "duplicate_operator",
    "missing_operator",
    "unknown_strategy",
    "strategy_not_allowed",
    "choice_form",
    "illegal_degree",
    "illegal_variant",
    "choice_time",
    "launcher_switch",
    "choice",
    "explanation",
    "metric_total",
    "metric_sequential_total",
)
"""Every code the check can report, in the order it reports them."""


def check(problem: CompassProblem, solution: CompassSolution) -> list[Violation]:
    """Everything the solution says that the problem refutes; empty for a correct plan. At most 100 of each code.

    Where choices are missing or are none that the problem offers, switches, optimality and totals are not looked at.
    A solution that names the rule it follows may be worse than the best. Figures agree within 1e-9 relative.
    """
    found = Findings()
    choices = _matched(problem, solution, found)
    if choices is None:
        return found.in_order(VIOLATIONS)
    of = [stages(operator) for operator in problem.operators]
    offered = ways(problem, of)
    done = [Way(choice.strategy, choice.degree, choice.variant) for choice in choices]
    for place, operator in enumerate(problem.operators):
        _check_choice(problem, operator, choices[place], done[place], offered[place], place, found)
    if not found.listed:
        check_switches(problem, done, found)
        if solution.rule is None and not found.listed:
            check_choices(problem, done, offered, found)
        check_explanations(problem.operators, of, choices, done, offered, found)
        whole = [sequential_s(operator, each) for operator, each in zip(problem.operators, of, strict=True)]
        _check_totals(problem, solution, [choice.time_s for choice in choices], whole, found)
    return found.in_order(VIOLATIONS)


def _matched(problem: CompassProblem, solution: CompassSolution, found: Findings) -> list[Choice] | None:
    """The choice of every operator, in its order; None where there is not exactly one of each."""
    known = {operator.id for operator in problem.operators}
    by_id: dict[str, Choice] = {}
    for place, choice in enumerate(solution.choices):
        name = choice.operator_id
        if name not in known:
            found.add("unknown_operator", f'the problem has no operator "{name[:80]}"', f"choices.{place}.operator_id")
        elif name in by_id:
            found.add("duplicate_operator", f'"{name}" has two choices', f"choices.{place}.operator_id")
        by_id.setdefault(name, choice)
    for name in sorted(known - by_id.keys()):
        found.add("missing_operator", f'"{name}" has no choice', "choices")
    if found.listed:
        return None
    names = [choice.operator_id for choice in solution.choices]
    if names != sorted(names):
        found.add("choice_form", "expected the choices sorted by operator_id", "choices")
    return [by_id[operator.id] for operator in problem.operators]


def _check_choice(
    problem: CompassProblem, operator: Operator, choice: Choice, way: Way, offered: Ways, place: int, found: Findings
) -> None:
    """That the problem offers what the choice says, in the time it says."""
    strategy, name = choice.strategy, operator.id
    time_s = offered.seconds(way) if strategy in operator.allowed_strategies else None
    if time_s is not None and agree(choice.time_s, time_s):
        return
    where = f"choices.{place}"
    if strategy not in STRATEGIES:
        message = f'{name}: expected one of {", ".join(STRATEGIES)}, got "{strategy[:80]}"'
        found.add("unknown_strategy", message, f"{where}.strategy")
        return
    if strategy not in operator.allowed_strategies:
        message = f"{name}: {strategy} is not among its allowed_strategies"
        found.add("strategy_not_allowed", message, f"{where}.strategy")
        return
    if strategy != "inter_decom" and choice.degree != 1:
        found.add("choice_form", f"{name}: {strategy} has degree 1, got {choice.degree}", f"{where}.degree")
        return
    if (strategy == "intra_fusion") != (choice.variant is not None):
        found.add("choice_form", f"{name}: a variant goes with intra_fusion and only with it", f"{where}.variant")
        return
    if time_s is not None:
        message = f"{name}: stated {choice.time_s!r}, recomputed {time_s!r}"
        found.add("choice_time", message, f"{where}.time_s")
    elif strategy == "inter_decom":
        message = f"{name}: {_why_illegal(problem, operator, choice.degree)}"
        found.add("illegal_degree", message, f"{where}.degree")
    else:
        message = f'{name}: no fused kernel "{str(choice.variant)[:80]}" is there for launcher_rules '
        found.add("illegal_variant", message + problem.launcher_rules, f"{where}.variant")


def _why_illegal(problem: CompassProblem, operator: Operator, degree: int) -> str:
    if degree not in degrees(operator):
        return f"expected {operator.legal_degrees_said()}, got {degree}"
    if degree not in startable(operator, problem.launcher_rules):
        return f"launcher_rules {problem.launcher_rules} cannot start degree {degree} with tp_size {operator.tp_size}"
    return f"degree {degree} is not in its inter_decom_table"


def _check_totals(
    problem: CompassProblem,
    solution: CompassSolution,
    times_s: Sequence[float],
    whole_s: Sequence[float],
    found: Findings,
) -> None:
    """Equation 8, of what was chosen and of everything in sequence."""
    count = [operator.count for operator in problem.operators]
    metrics = solution.metrics
    for code, field, stated, each in (
        ("metric_total", "total_time_s", metrics.total_time_s, times_s),
        ("metric_sequential_total", "sequential_total_time_s", metrics.sequential_total_time_s, whole_s),
    ):
        recomputed = math.fsum(number * time_s for number, time_s in zip(count, each, strict=True))
        if not agree(stated, recomputed):
            found.add(code, f"stated {stated!r}, recomputed {recomputed!r}", f"metrics.{field}")
