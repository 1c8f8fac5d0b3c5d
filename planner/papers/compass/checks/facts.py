"""What the check reads from the problem alone: legal degrees and seconds, apart from the search (page, section 3)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from planner.papers.compass.checks.ways import Ways
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


def ways(problem: CompassProblem, operator: Operator, of: Stages) -> Ways:
    """Everything the operator may do, switches apart."""
    allowed, rules = operator.allowed_strategies, problem.launcher_rules
    fused = operator.fused if "intra_fusion" in allowed and rules == "none" else ()
    return Ways(
        sequential_s(operator, of) if "sequential" in allowed else None,
        _chunked_s(operator, of, startable(operator, rules)) if "inter_decom" in allowed else {},
        dict(sorted((kernel.id, kernel.time_s) for kernel in fused)),
    )


def stages(operator: Operator) -> Stages:
    """What the operator states of its two stages; NaN where it states none."""
    comm, gemm, mu = operator.comm, operator.gemm, operator.contention
    if comm is None or gemm is None:
        return Stages(math.nan, math.nan, math.nan, math.nan, mu.comm, mu.gemm)
    return Stages(comm.startup_s, comm.payload_s, gemm.startup_s, gemm.payload_s, mu.comm, mu.gemm)


def _chunked_s(operator: Operator, of: Stages, legal: tuple[int, ...]) -> dict[int, float]:
    """Equation 2 [s], or what the table says, by degree."""
    if operator.inter_decom_table is not None:
        listed = {point.degree: point.time_s for point in operator.inter_decom_table}
        return {d: listed[d] for d in legal if d in listed}
    if operator.comm is None:
        return {}
    a_c, v_c, a_g, v_g, mu_c, mu_g = of
    return {
        d: max(mu_c * (a_c + v_c / d), mu_g * (a_g + v_g / d)) * (d - 1) + (a_c + a_g) + (v_c + v_g) / d for d in legal
    }
