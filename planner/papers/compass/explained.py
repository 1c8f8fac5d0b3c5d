"""Choices written down, with what explains them (page, section 7): bound stage, d*, crossing, runner-up."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from planner.papers.compass.candidates import Candidates
from planner.papers.compass.closed_form import crossing, real_optimum
from planner.papers.compass.problem import STRATEGIES, CompassProblem, Operator
from planner.papers.compass.solution import BoundBy, Choice, CompassSolution, Metrics, RunnerUp
from planner.papers.compass.times import Floats, Ints, is_comm_bound
from planner.validation import trusted


def solution_of(problem: CompassProblem, offered: Candidates, chosen: Ints, rule: str | None = None) -> CompassSolution:
    """The solution in which operator i does candidate ``chosen[i]``; ``rule`` names a baseline that chose so."""
    if (chosen < 0).any():
        raise TypeError("every operator has a choice by now")
    others = offered.time_s.copy()
    others[chosen] = np.inf
    seconds = replace(offered, time_s=others).best()
    contested = seconds >= 0
    rows = zip(
        problem.operators,
        _ways(problem, offered, chosen),
        contested.tolist(),
        _ways(problem, offered, np.where(contested, seconds, chosen)),
        is_comm_bound(offered.costs, offered.degree[chosen]).tolist(),
        _finite(real_optimum(offered.costs)),
        _finite(crossing(offered.costs)),
        strict=True,
    )
    choices = []
    for operator, way, is_contested, second, by_comm, optimum, cross in rows:
        way["operator_id"] = operator.id
        way["bound"] = _bound(operator, way["strategy"], by_comm)
        way["d_star"], way["crossing"] = optimum, cross
        way["runner_up"] = trusted(RunnerUp, second) if is_contested else None
        choices.append(trusted(Choice, way))
    metrics = Metrics(
        total_time_s=offered.total_s(chosen),
        sequential_total_time_s=float(offered.count @ offered.sequential_s),
    )
    return trusted(CompassSolution, {"choices": tuple(choices), "metrics": metrics, "rule": rule})


def _ways(problem: CompassProblem, offered: Candidates, places: Ints) -> list[dict[str, object]]:
    """The fields that choices and runners-up share, of one candidate for every operator."""
    columns = (offered.kind, offered.degree, offered.variant, offered.time_s)
    return [
        {
            "strategy": STRATEGIES[kind],
            "degree": degree,
            "variant": None if variant < 0 else operator.fused[variant].id,
            "time_s": time_s,
        }
        for operator, kind, degree, variant, time_s in zip(
            problem.operators, *(column[places].tolist() for column in columns), strict=True
        )
    ]


def _finite(values: Floats) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _bound(operator: Operator, strategy: object, by_comm: bool) -> BoundBy | None:
    if strategy == "inter_decom":
        if operator.inter_decom_table is not None:
            return "table"
        return "comm" if by_comm else "gemm"
    return None if strategy == "sequential" and operator.sequential_time_s is None else "given"
