"""Why an operator can do nothing (page, section 4), and the change that helps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.errors import InfeasibleError, Relaxation
from planner.papers.compass.candidates import SEQUENTIAL, Candidates, candidates, degrees_offered
from planner.papers.compass.degrees import divisors, launched_degrees, legal_degrees
from planner.papers.compass.launcher import settled, switches
from planner.papers.compass.problem import CompassProblem, Operator, Rules, Strategy
from planner.papers.compass.times import Ints

SEQUENTIALLY: Strategy = "sequential"


def no_strategy(problem: CompassProblem, offered: Candidates, chosen: Ints) -> InfeasibleError:
    """The error of a problem in which some operators, -1 in ``chosen``, are left without a strategy."""
    rules = problem.launcher_rules
    stuck = [operator for operator, place in zip(problem.operators, offered.best(), strict=True) if place < 0]
    if stuck:
        message = f"operator {_named(stuck[0])} can do nothing: {_reason(stuck[0], rules)}"
        return _error(problem, message, stuck, len(stuck) == 1)
    blocked = [switch for switch in switches(problem) if (chosen[list(switch.all)] < 0).all()]
    switch = blocked[0]
    members = [problem.operators[place] for place in switch.all]
    insisting = [operator for operator in members if "sequential" not in operator.allowed_strategies]
    unable = offered.without(offered.kind == SEQUENTIAL).best()
    blocking = next(problem.operators[place] for place in switch.tied if unable[place] < 0)
    message = (
        f"the {switch.name} switch of launcher_rules {rules} is one for {_named(insisting[0])}, whose "
        f"allowed_strategies leave sequential out, and {_named(blocking)}, which cannot overlap: "
        f"{_reason(blocking, rules)}"
    )
    return _error(problem, message, insisting, len(blocked) == 1)


def _error(problem: CompassProblem, message: str, operators: Sequence[Operator], alone: bool) -> InfeasibleError:
    """With the change that was seen to be enough, of one of some operators or of the launcher's rules.

    ``alone`` False: they are several, each of which needs a change. Where no one change is enough the first is named.
    """
    where = _field(operators[0])
    enough = next((operator for operator in operators if alone and _is_solved_by(problem, operator)), None)
    relaxation = Relaxation(
        _field(enough or operators[0]), SEQUENTIALLY, proven=enough is not None, enough=bool(enough)
    )
    if enough is None and problem.launcher_rules != "none" and _is_solved(problem, "none", problem.operators):
        relaxation = Relaxation("launcher_rules", "none", proven=True)
    elif enough is None:
        message += "; no change of one operator is enough"
    return InfeasibleError(message, code="no_strategy", where=where, relaxation=relaxation)


def _is_solved_by(problem: CompassProblem, operator: Operator) -> bool:
    """Whether running one operator in sequence leaves every operator a strategy."""
    changed = operator.model_copy(update={"allowed_strategies": (SEQUENTIALLY,)})
    operators = tuple(changed if each is operator else each for each in problem.operators)
    return _is_solved(problem, problem.launcher_rules, operators)


def _is_solved(problem: CompassProblem, rules: Rules, operators: tuple[Operator, ...]) -> bool:
    changed = problem.model_copy(update={"launcher_rules": rules, "operators": operators})
    return bool((settled(changed, candidates(changed)) >= 0).all())


def _field(operator: Operator) -> str:
    return f"operators.{operator.id}.allowed_strategies"


def _reason(operator: Operator, rules: Rules) -> str:
    """Why neither chunks nor a fused kernel are there."""
    reasons = []
    if "inter_decom" in operator.allowed_strategies and not degrees_offered(operator, rules):
        reasons.append(no_degree(operator, rules))
    if "intra_fusion" in operator.allowed_strategies:
        if not operator.fused:
            reasons.append("no fused kernel is listed")
        elif rules != "none":
            reasons.append(f"launcher_rules {rules} has no fused kernels")
    if not reasons:
        reasons.append("its allowed_strategies leave chunks and fused kernels out")
    return "; ".join(reasons)


def no_degree(operator: Operator, rules: Rules) -> str:
    """Why an operator has no degree to be cut into, and what would give it one."""
    extent, multiple, cap = operator.split_extent, operator.split_multiple, operator.max_degree
    if extent % multiple:
        smaller = math.gcd(extent, multiple)
        helps = f"; {smaller} does" if divisors(extent // smaller, cap) else ""
        return f"split_multiple {multiple} does not divide split_extent {extent}{helps}"
    if not legal_degrees(operator):
        share = extent // multiple
        quotient = f"split_extent / split_multiple = {extent} / {multiple} = {share}"
        least = next(iter(divisors(share, share)), None)
        return (
            f"{quotient} has no divisor from 2 to max_degree {cap}; "
            f"{'' if least is None else f'max_degree {least} leaves one, '}a smaller split_multiple may"
        )
    if not launched_degrees(operator, rules):
        if operator.op == "ag_gemm":
            return (
                f"launcher_rules {rules} takes an all-gather in tp_size or tp_size / 2 chunks, and neither divides "
                f"split_extent / split_multiple = {extent} / {multiple} within max_degree {cap}; a smaller "
                "split_multiple or a larger max_degree may help"
            )
        return f"launcher_rules {rules} overlaps no {operator.op}"
    if operator.inter_decom_table is not None:
        return f"no degree of inter_decom_table is one that launcher_rules {rules} can start"
    return "comm and gemm are not given, nor is an inter_decom_table"


def _named(operator: Operator) -> str:
    return f'"{operator.id}"'
