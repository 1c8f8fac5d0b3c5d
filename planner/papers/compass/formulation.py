"""The exhaustive reference (page, section 4): every setting of the switches, every degree, every fused kernel.

Plain loops over the page's own words, slow and short. Nothing of the search takes part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from planner.errors import LimitError
from planner.papers.compass.problem import AG_NAMES, RS_NAMES, CompassProblem, Operator

MOST_TRIED = 2_000_000
"""Degrees that are tried one by one, over all operators."""
EQUAL = 1 + 1e-9
"""Times within this ratio tie."""

SEQUENTIAL, INTER_DECOM, INTRA_FUSION = range(3)


class Option(NamedTuple):
    """One thing an operator may do; in the order of ties."""

    kind: int
    degree: int
    variant: int
    time_s: float


def exhausted(problem: CompassProblem) -> list[Option]:
    """The best option of every operator. Raises LimitError where there are too many degrees to try one by one."""
    tried = sum(_last_degree(operator) for operator in problem.operators)
    if tried > MOST_TRIED:
        message = f"method exact tries degrees one by one, {tried:,} here, and stops at {MOST_TRIED:,}"
        raise LimitError(message, code="too_large", where="operators")
    options = [list(_options(problem, operator)) for operator in problem.operators]
    if problem.launcher_rules == "none":
        return [_first_best(each) for each in options]
    found: dict[int, Option] = {}
    for names in (RS_NAMES, AG_NAMES):
        found |= _under_one_flag(problem, options, names)
    return [found[place] if place in found else _first_best(each) for place, each in enumerate(options)]


def _under_one_flag(problem: CompassProblem, options: list[list[Option]], names: tuple[str, ...]) -> dict[int, Option]:
    """The best of a flag off and on, by place of the operator; empty where it ties nothing.

    Off, all run in sequence. On, all overlap but for those that can be excepted, which do as they like.
    """
    places = {
        place: operator.gemm_name not in ("qkv_fprop", "fc1_fprop")
        for place, operator in enumerate(problem.operators)
        if operator.gemm_name in names and operator.op in ("ag_gemm", "gemm_rs")
    }
    if not any(places.values()):
        return {}
    best: tuple[float, dict[int, Option]] | None = None
    for flag in (False, True):
        kept = {
            place: [
                option
                for option in options[place]
                if (option.kind == SEQUENTIAL if not flag else option.kind != SEQUENTIAL or not tied)
            ]
            for place, tied in places.items()
        }
        if not all(kept.values()):
            continue
        chosen = {place: _first_best(each) for place, each in kept.items()}
        total_s = sum(problem.operators[place].count * option.time_s for place, option in chosen.items())
        if best is None or total_s * EQUAL < best[0]:
            best = (total_s, chosen)
    return {} if best is None else best[1]


def _options(problem: CompassProblem, operator: Operator) -> Iterator[Option]:
    allowed = operator.allowed_strategies
    if "sequential" in allowed:
        yield Option(SEQUENTIAL, 1, -1, _seconds(operator, 1))
    if "inter_decom" in allowed:
        table = {point.degree: point.time_s for point in operator.inter_decom_table or ()}
        for degree in range(2, _last_degree(operator) + 1):
            if operator.split_extent % (operator.split_multiple * degree):
                continue
            if problem.launcher_rules != "none" and not _starts(operator, degree):
                continue
            if operator.inter_decom_table is not None:
                if degree in table:
                    yield Option(INTER_DECOM, degree, -1, table[degree])
            elif operator.comm is not None:
                yield Option(INTER_DECOM, degree, -1, _seconds(operator, degree))
    if "intra_fusion" in allowed and problem.launcher_rules == "none":
        for _, place in sorted((fused.id, place) for place, fused in enumerate(operator.fused)):
            yield Option(INTRA_FUSION, 1, place, operator.fused[place].time_s)


def _starts(operator: Operator, degree: int) -> bool:
    if operator.op == "gemm_rs":
        return True
    return operator.op == "ag_gemm" and operator.tp_size is not None and operator.tp_size in (degree, 2 * degree)


def _last_degree(operator: Operator) -> int:
    return min(operator.max_degree, operator.split_extent // operator.split_multiple)


def _seconds(operator: Operator, d: int) -> float:
    """Equations 1 and 2, written out: chunk j of the second stage waits for the first's and for its own chunk before.

    All chunks but the first and the last run beside one of the other stage, and take as long as the slower of both.
    """
    if d == 1 and operator.sequential_time_s is not None:
        return operator.sequential_time_s
    comm, gemm = operator.comm, operator.gemm
    if comm is None or gemm is None:
        raise TypeError("a validated operator without stages states its times")
    t_c = comm.startup_s + comm.payload_s / d
    t_g = gemm.startup_s + gemm.payload_s / d
    return t_c + t_g + (d - 1) * max(operator.contention.comm * t_c, operator.contention.gemm * t_g)


def _first_best(options: list[Option]) -> Option:
    least = min(option.time_s for option in options)
    return next(option for option in options if option.time_s <= least * EQUAL)
