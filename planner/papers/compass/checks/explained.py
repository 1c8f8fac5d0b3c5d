"""What a choice says of itself: the bound stage, d*, the crossing and the runner-up, each tried against the problem."""

from __future__ import annotations

import math

from planner.findings import Findings
from planner.papers.compass.checks.facts import Stages
from planner.papers.compass.checks.ways import TOLERANCE, Way, Ways, agree
from planner.papers.compass.problem import Operator
from planner.papers.compass.solution import Choice

STEP = 1e-4
"""Relative distance at which a stated optimum is compared with its neighbours."""


def check_explanation(operator: Operator, of: Stages, choice: Choice, ways: Ways, where: str, found: Findings) -> None:
    """Every explanation that is given, given that the choice itself is one of ``ways``."""

    def wrong(field: str, message: str) -> None:
        found.add("explanation", message, f"{where}.{field}")

    if choice.bound is not None and choice.bound != (expected := _bound(operator, of, choice)):
        wrong("bound", f"stated {choice.bound}, expected {expected}")
    if choice.crossing is not None and not _crosses(of, choice.crossing):
        wrong("crossing", f"the slower stage is the same on both sides of {choice.crossing!r}")
    if choice.d_star is not None and not _is_least(of, choice.d_star):
        wrong("d_star", f"T is not least at {choice.d_star!r}")
    runner_up = choice.runner_up
    if runner_up is None:
        return
    second = Way(runner_up.strategy, runner_up.degree, runner_up.variant)
    done = Way(choice.strategy, choice.degree, choice.variant)
    time_s, least_s = ways.seconds(second), ways.least_s(without=done)
    if time_s is None or second == done or not agree(runner_up.time_s, time_s):
        wrong("runner_up", "no other candidate of the operator is this one with this time")
    elif runner_up.time_s > least_s * (1 + 2 * TOLERANCE):
        wrong("runner_up", f"another candidate takes {least_s!r} s")


def _steady_s(of: Stages, d: float) -> tuple[float, float]:
    """Seconds of a chunk of each stage beside the other."""
    return of.mu_c * (of.a_c + of.v_c / d), of.mu_g * (of.a_g + of.v_g / d)


def _total_s(of: Stages, d: float) -> float:
    t_c, t_g = of.a_c + of.v_c / d, of.a_g + of.v_g / d
    return t_c + t_g + (d - 1) * max(of.mu_c * t_c, of.mu_g * t_g)


def _bound(operator: Operator, of: Stages, choice: Choice) -> str | None:
    if choice.strategy == "inter_decom":
        if operator.inter_decom_table is not None:
            return "table"
        comm, gemm = _steady_s(of, choice.degree)
        if agree(comm, gemm):
            return choice.bound
        return "comm" if comm > gemm else "gemm"
    return None if choice.strategy == "sequential" and operator.sequential_time_s is None else "given"


def _crosses(of: Stages, d: float) -> bool:
    """Whether both stages take the same at d, and one is slower before it, the other after."""
    if not d > 0:
        return False
    before, at, after = (_steady_s(of, d * factor) for factor in (0.5, 1.0, 2.0))
    if not math.isclose(*at, rel_tol=1e-6):
        return False
    return agree(*before) or agree(*after) or (before[0] < before[1]) != (after[0] < after[1])


def _is_least(of: Stages, d: float) -> bool:
    """Whether T is no less anywhere near d; T falls and then rises, so then it is nowhere less."""
    if not d >= 1:
        return False
    here = _total_s(of, d) / (1 + TOLERANCE)
    return here <= _total_s(of, d * (1 + STEP)) and here <= _total_s(of, max(1.0, d * (1 - STEP)))
