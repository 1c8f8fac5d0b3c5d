"""What the reader of a plan should know before launching, the most important first: a summary shows three."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.paper import Warned
from planner.papers.compass.calls import Call, calls
from planner.papers.compass.candidates import INTER_DECOM, candidates
from planner.papers.compass.degrees import divisors, launched_degrees, legal_degrees
from planner.papers.compass.infeasibility import no_degree
from planner.papers.compass.problem import CompassProblem
from planner.papers.compass.solution import CompassSolution
from planner.papers.compass.times import MOST_APART, costs_of, inter_decom_s
from planner.papers.compass.warned.launched import launcher_warned
from planner.papers.compass.warned.names import names
from planner.papers.compass.warned.prices import prices_warned
from planner.papers.compass.warned.runs import runs_warned
from planner.units import in_bytes

FARTHER = 4
"""How many times the most chunks a better degree is looked for."""


ORDER = (
    "times_disagree",
    "times_too_long",
    "other_device",
    "buffers_exceed_memory",
    "narrow_dtype_slower",
    "sequential_not_measured",
    "chunks_not_measured",
    "switch_partner",
    "degrees_not_started",
    "no_legal_degree",
    "ring_by_chunks",
    "contention_unmeasured",
    "contention_assumed",
    "affine_fit",
    "closed_form_unreliable",
    "fused_modelled",
    "largest_degree",
    "composed_table",
    "left_out",
    "fused_missing",
)
"""From prices that are wrong, over comparisons that are not fair and choices that fell away, to what is not known."""


def warnings(problem: CompassProblem, solution: CompassSolution) -> list[Warned]:
    """All of them, each code once or, of a switch, once for each, in ``ORDER``."""
    made = calls(problem, solution)
    found = [
        *prices_warned(problem),
        *runs_warned(problem, made),
        *launcher_warned(problem, made),
        *_contention_assumed(problem, made),
        *_largest_degree(problem, made),
        *_no_legal_degree(problem, made),
        *_times_disagree(made),
        *_buffers_exceed_memory(problem, solution),
    ]
    return sorted(found, key=lambda warned: ORDER.index(warned.code))


def _contention_assumed(problem: CompassProblem, made: list[Call]) -> Iterator[Warned]:
    """Chunks by equation 2 that slow nothing down; derived prices say so themselves."""
    if "contention_unmeasured" in (problem.cautions or {}):
        return
    free = [
        call
        for call in made
        if call.choice.strategy == "inter_decom"
        and call.operator.inter_decom_table is None
        and call.operator.contention.comm == call.operator.contention.gemm == 1
    ]
    if free:
        yield Warned(
            "contention_assumed",
            f"{_named(free)}: GEMM and collective are taken to run as fast beside each other as alone; measure the "
            "slow-down and state contention",
        )


def _largest_degree(problem: CompassProblem, made: list[Call]) -> Iterator[Warned]:
    """Choices that end where max_degree or a table does, though more chunks may be better yet."""
    # A ring has the degrees it has.
    ring = problem.launcher_rules != "none"
    last = [
        (call, further)
        for call in made
        if call.choice.strategy == "inter_decom" and not (ring and call.operator.op == "ag_gemm")
        if (further := _next_degree(call)) is not None
    ]
    priced = inter_decom_s(costs_of([call.operator for call, _ in last]), np.array([d for _, d in last])).tolist()
    ended = [
        call
        for (call, _), further_s in zip(last, priced, strict=True)
        if call.operator.inter_decom_table is not None or further_s < call.choice.time_s
    ]
    if ended:
        yield Warned(
            "largest_degree",
            f"{_named(ended)}: no more chunks than these were offered or priced, and more may be better: raise "
            "max_degree, or give times of more degrees",
        )


def _next_degree(call: Call) -> int | None:
    """The next legal degree, whatever the cap, of a choice that is the last one offered; None where there is none."""
    operator, degree = call.operator, call.choice.degree
    table = operator.inter_decom_table
    if degree < (legal_degrees(operator)[-1] if table is None else table[-1].degree):
        return None
    multiples = operator.split_extent // operator.split_multiple
    farther = divisors(multiples, min(multiples, FARTHER * operator.max_degree))
    return next((d for d in farther if d > degree), None)


def _no_legal_degree(problem: CompassProblem, made: list[Call]) -> Iterator[Warned]:
    """Operators that may be cut and can not be, whatever it would cost."""
    rules, offered = problem.launcher_rules, candidates(problem)
    cut = np.bincount(offered.operator[offered.kind == INTER_DECOM], minlength=len(made))
    whole = [
        operator
        for operator in (made[place].operator for place in np.flatnonzero(cut == 0).tolist())
        if "inter_decom" in operator.allowed_strategies
        and operator.max_degree > 1
        and not launched_degrees(operator, rules)
    ]
    if whole:
        first, more = whole[0], len(whole) - 1
        others = f"; likewise {names(whole[1:])}" if more else ""
        yield Warned("no_legal_degree", f"{first.id} cannot be cut into chunks: {no_degree(first, rules)}{others}")


def _times_disagree(made: list[Call]) -> Iterator[Warned]:
    """Stated times of overlap that no overlap explains, beside what is stated of the operator in sequence."""
    apart = [call for call in made if _is_apart(call)]
    if apart:
        yield Warned(
            "times_disagree",
            f"{_named(apart)}: overlapped and in sequence differ by more than {MOST_APART} times, which no overlap "
            "explains; are all times in seconds?",
        )


def _is_apart(call: Call) -> bool:
    second, alone_s = call.choice.runner_up, call.sequential_s
    if call.choice.time_s * MOST_APART < alone_s:
        return True
    stated = second is not None and (second.strategy != "inter_decom" or call.operator.inter_decom_table is not None)
    return second is not None and stated and second.time_s > MOST_APART * max(alone_s, call.choice.time_s)


def buffers(problem: CompassProblem, solution: CompassSolution) -> dict[str, float]:
    """Bytes on each GPU by cause that overlapping holds; every operator has its own, which all layers use."""
    held: dict[str, float] = {}
    for operator, choice in zip(problem.operators, solution.choices, strict=True):
        stated = operator.overlap_bytes
        if stated is None or choice.strategy == "sequential":
            continue
        for cause, amount in (stated if isinstance(stated, dict) else {"overlap buffer": stated}).items():
            held[cause] = held.get(cause, 0.0) + amount
    return held


def _buffers_exceed_memory(problem: CompassProblem, solution: CompassSolution) -> Iterator[Warned]:
    capacity = problem.memory_capacity_bytes
    used = 0.0 if capacity is None else sum(buffers(problem, solution).values())
    if capacity is not None and used > capacity:
        yield Warned(
            "buffers_exceed_memory",
            f"the buffers of overlap take {in_bytes(used)} on each GPU, which has {in_bytes(capacity)}: the model does "
            "not limit them; keep operators in sequence by allowed_strategies",
        )


def _named(made: list[Call]) -> str:
    return names([call.operator for call in made])
