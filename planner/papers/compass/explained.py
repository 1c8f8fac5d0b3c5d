"""Choices written down, with what explains them (page, section 7): bound stage, d*, crossing, runner-up."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from planner.papers.compass.candidates import Candidates
from planner.papers.compass.closed_form import crossing, real_optimum
from planner.papers.compass.problem import STRATEGIES, CompassProblem, Operator
from planner.papers.compass.solution import BoundBy, Choice, CompassSolution, Metrics, RunnerUp
from planner.papers.compass.times import Ints, is_comm_bound
from planner.validation import trusted


def solution_of(problem: CompassProblem, offered: Candidates, chosen: Ints, rule: str | None = None) -> CompassSolution:
    """The solution in which operator i does candidate ``chosen[i]``; ``rule`` names a baseline that chose so."""
    others = offered.time_s.copy()
    others[chosen] = np.inf
    done, seconds = _ways(problem, offered, chosen), _ways(problem, offered, replace(offered, time_s=others).best())
    by_comm = is_comm_bound(offered.costs, offered.degree[chosen]).tolist()
    optimum, cross = real_optimum(offered.costs).tolist(), crossing(offered.costs).tolist()
    choices = []
    for index, operator in enumerate(problem.operators):
        way, second = done[index], seconds[index]
        if way is None:
            raise TypeError("every operator has a choice by now")
        explained: dict[str, object] = {
            "operator_id": operator.id,
            "bound": _bound(operator, way["strategy"], by_comm[index]),
            "d_star": optimum[index] if math.isfinite(optimum[index]) else None,
            "crossing": cross[index] if math.isfinite(cross[index]) else None,
            "runner_up": None if second is None else trusted(RunnerUp, second),
        }
        choices.append(trusted(Choice, way | explained))
    metrics = Metrics(
        total_time_s=offered.total_s(chosen),
        sequential_total_time_s=float(offered.count @ offered.sequential_s),
    )
    return trusted(CompassSolution, {"choices": tuple(choices), "metrics": metrics, "rule": rule})


def _ways(problem: CompassProblem, offered: Candidates, places: Ints) -> list[dict[str, object] | None]:
    """The fields that choices and runners-up share, of one candidate for every operator; None for place -1."""
    columns = (offered.kind, offered.degree, offered.variant, offered.time_s)
    values = zip(problem.operators, places.tolist(), *(column[places].tolist() for column in columns), strict=True)
    return [
        {
            "strategy": STRATEGIES[kind],
            "degree": degree,
            "variant": None if variant < 0 else operator.fused[variant].id,
            "time_s": time_s,
        }
        if place >= 0
        else None
        for operator, place, kind, degree, variant, time_s in values
    ]


def _bound(operator: Operator, strategy: object, by_comm: bool) -> BoundBy | None:
    if strategy == "inter_decom":
        if operator.inter_decom_table is not None:
            return "table"
        return "comm" if by_comm else "gemm"
    return None if strategy == "sequential" and operator.sequential_time_s is None else "given"
