"""What the check reads from the problem alone: legal degrees and seconds, apart from the search (page, section 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.papers.compass.checks.ways import Ways, ways_of
from planner.papers.compass.problem import CompassProblem, Operator, Rules


class Stages(NamedTuple):
    """Start-up and payload of the collective and of the GEMM [s], and how much slower each is beside the other."""

    a_c: float
    v_c: float
    a_g: float
    v_g: float
    mu_c: float
    mu_g: float


@lru_cache(maxsize=32768)
def cuts(number: int, most: int) -> tuple[int, ...]:
    """All divisors from 2 to ``most``, ascending, from the prime factors."""
    found, rest, prime = [1], number, 2
    while rest > 1:
        if prime * prime > rest:
            prime = rest
        power, grown = 1, found
        while rest % prime == 0:
            rest //= prime
            power *= prime
            grown = grown + [d * power for d in found if d * power <= most]
        found = grown
        prime += 1 if prime == 2 else 2
    return tuple(d for d in sorted(found) if d >= 2)


def degrees(operator: Operator) -> tuple[int, ...]:
    """D of section 3.4, ascending."""
    if operator.split_extent % operator.split_multiple:
        return ()
    return cuts(operator.split_extent // operator.split_multiple, operator.max_degree)


def startable(operator: Operator, rules: Rules) -> tuple[int, ...]:
    """What of it the launcher can start (section 3.6)."""
    legal = degrees(operator)
    if rules == "transformer_engine" and operator.op != "gemm_rs":
        p = operator.tp_size if operator.op == "ag_gemm" else None
        return tuple(d for d in legal if p is not None and p in (d, 2 * d))
    return legal


def sequential_s(operator: Operator, of: Stages) -> float:
    """Equation 1 [s], or what is stated."""
    if operator.sequential_time_s is not None:
        return operator.sequential_time_s
    return of.a_c + of.v_c + of.a_g + of.v_g


def ways(problem: CompassProblem, of: Sequence[Stages]) -> list[Ways]:
    """Everything every operator may do, switches apart."""
    rules = problem.launcher_rules
    offered = []
    for operator, each, chunked_s in zip(problem.operators, of, _chunked_s(problem, of), strict=True):
        allowed = operator.allowed_strategies
        fused = operator.fused if "intra_fusion" in allowed and rules == "none" else ()
        offered.append(
            ways_of(
                sequential_s(operator, each) if "sequential" in allowed else None,
                chunked_s,
                dict(sorted([(kernel.id, kernel.time_s) for kernel in fused])) if fused else {},
            )
        )
    return offered


def stages(operator: Operator) -> Stages:
    """What the operator states of its two stages; NaN where it states none."""
    comm, gemm, mu = operator.comm, operator.gemm, operator.contention
    if comm is None or gemm is None:
        return Stages(math.nan, math.nan, math.nan, math.nan, mu.comm, mu.gemm)
    return Stages(comm.startup_s, comm.payload_s, gemm.startup_s, gemm.payload_s, mu.comm, mu.gemm)


def columns(of: Sequence[Stages]) -> npt.NDArray[np.float64]:
    """The fields of all operators' stages, one a row."""
    return np.fromiter(chain.from_iterable(of), np.float64, 6 * len(of)).reshape(-1, 6).T


def _chunked_s(problem: CompassProblem, of: Sequence[Stages]) -> list[dict[int, float]]:
    """Equation 2 [s], or what the table says, by degree; of every operator."""
    legal = [
        startable(operator, problem.launcher_rules) if "inter_decom" in operator.allowed_strategies else ()
        for operator in problem.operators
    ]
    modelled = [
        () if operator.comm is None or operator.inter_decom_table is not None else degrees
        for operator, degrees in zip(problem.operators, legal, strict=True)
    ]
    d = np.array([degree for degrees in modelled for degree in degrees], dtype=np.float64)
    a_c, v_c, a_g, v_g, mu_c, mu_g = np.repeat(columns(of), [len(degrees) for degrees in modelled], axis=1)
    slower = np.maximum(mu_c * (a_c + v_c / d), mu_g * (a_g + v_g / d))
    times = iter((slower * (d - 1) + (a_c + a_g) + (v_c + v_g) / d).tolist())
    found = []
    for operator, all_, degrees in zip(problem.operators, legal, modelled, strict=True):
        if operator.inter_decom_table is not None:
            listed = {point.degree: point.time_s for point in operator.inter_decom_table}
            found.append({degree: listed[degree] for degree in all_ if degree in listed})
        else:
            # Of one long row of times each operator takes its own: a zip that ends first by degrees takes no more.
            found.append(dict(zip(degrees, times, strict=False)))
    return found
