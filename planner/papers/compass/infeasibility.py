"""Why an operator can do nothing (page, section 4), and the change that helps."""

from __future__ import annotations

from planner.errors import InfeasibleError, Relaxation
from planner.papers.compass.candidates import SEQUENTIAL, Candidates, degrees_offered
from planner.papers.compass.degrees import launched_degrees, legal_degrees
from planner.papers.compass.launcher import switches
from planner.papers.compass.problem import CompassProblem, Operator, Rules
from planner.papers.compass.times import Ints


def no_strategy(problem: CompassProblem, offered: Candidates, chosen: Ints) -> InfeasibleError:
    """The error of a problem in which some operators, -1 in ``chosen``, are left without a strategy."""
    rules = problem.launcher_rules
    stuck = [operator for operator, place in zip(problem.operators, offered.best(), strict=True) if place < 0]
    if stuck:
        message = f"operator {_named(stuck[0])} can do nothing: {_reason(stuck[0], rules)}"
        # Of several it takes one change each.
        return _error(message, stuck[0], len(stuck) == 1 and not _coupled(problem, stuck[0]))
    switch = next(switch for switch in switches(problem) if (chosen[list(switch.all)] < 0).all())
    members = [problem.operators[place] for place in switch.all]
    insisting = [operator for operator in members if "sequential" not in operator.allowed_strategies]
    unable = offered.without(offered.kind == SEQUENTIAL).best()
    blocking = next(problem.operators[place] for place in switch.tied if unable[place] < 0)
    message = (
        f"the {switch.name} switch of launcher_rules {rules} is one for {_named(insisting[0])}, whose "
        f"allowed_strategies leave sequential out, and {_named(blocking)}, which cannot overlap: "
        f"{_reason(blocking, rules)}"
    )
    return _error(message, insisting[0], len(insisting) == 1)


def _error(message: str, operator: Operator, alone: bool) -> InfeasibleError:
    field = f"operators.{operator.id}.allowed_strategies"
    relaxation = Relaxation(field, "sequential", proven=alone, enough=alone)
    return InfeasibleError(message, code="no_strategy", where=field, relaxation=relaxation)


def _coupled(problem: CompassProblem, operator: Operator) -> bool:
    """Whether a switch ties the operator to another that insists on overlap."""
    place = problem.operators.index(operator)
    return any(
        "sequential" not in problem.operators[other].allowed_strategies
        for switch in switches(problem)
        if place in switch.all
        for other in switch.all
        if other != place
    )


def _reason(operator: Operator, rules: Rules) -> str:
    """Why neither chunks nor a fused kernel are there."""
    reasons = []
    if "inter_decom" in operator.allowed_strategies and not degrees_offered(operator, rules):
        reasons.append(_no_degree(operator, rules))
    if "intra_fusion" in operator.allowed_strategies:
        if not operator.fused:
            reasons.append("no fused kernel is listed")
        elif rules != "none":
            reasons.append(f"launcher_rules {rules} has no fused kernels")
    if not reasons:
        reasons.append("its allowed_strategies leave chunks and fused kernels out")
    return "; ".join(reasons)


def _no_degree(operator: Operator, rules: Rules) -> str:
    extent, multiple, cap = operator.split_extent, operator.split_multiple, operator.max_degree
    if extent % multiple:
        return f"split_multiple {multiple} does not divide split_extent {extent}"
    if not legal_degrees(operator):
        return f"split_extent / split_multiple = {extent // multiple} has no divisor from 2 to max_degree {cap}"
    if not launched_degrees(operator, rules):
        if operator.op == "ag_gemm":
            return f"launcher_rules {rules} takes an all-gather in tp_size or tp_size / 2 chunks, which are not legal"
        return f"launcher_rules {rules} overlaps no {operator.op}"
    if operator.inter_decom_table is not None:
        return f"no degree of inter_decom_table is one that launcher_rules {rules} can start"
    return "comm and gemm are not given, nor is an inter_decom_table"


def _named(operator: Operator) -> str:
    return f'"{operator.id}"'
