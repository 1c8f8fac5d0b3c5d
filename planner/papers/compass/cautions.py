"""What the reader of a plan should know before launching; first what prices and fits say themselves."""

from __future__ import annotations

from collections.abc import Iterator

from planner.paper import Warned
from planner.papers.compass.calls import Call, calls
from planner.papers.compass.degrees import divisors
from planner.papers.compass.problem import CompassProblem, Contention
from planner.papers.compass.solution import CompassSolution
from planner.papers.compass.times import costs_of, inter_decom_s
from planner.papers.compass.warned import warnings as warnings_of_prices
from planner.units import in_bytes

FARTHER = 4
"""How many times the most chunks a better degree is looked for."""


def warnings(problem: CompassProblem, solution: CompassSolution) -> list[Warned]:
    """Those of the prices, then contention_assumed, largest_degree, buffers_exceed_memory."""
    made = calls(problem, solution)
    return [
        *warnings_of_prices(problem, solution),
        *_contention_assumed(problem, made),
        *_largest_degree(problem, made),
        *_buffers_exceed_memory(problem, solution),
    ]


def _contention_assumed(problem: CompassProblem, made: list[Call]) -> Iterator[Warned]:
    """Chunks by equation 2 that slow nothing down; derived prices say so themselves."""
    if "contention_unmeasured" in (problem.cautions or {}):
        return
    free = [
        call
        for call in made
        if call.choice.strategy == "inter_decom"
        and call.operator.inter_decom_table is None
        and call.operator.contention == Contention()
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
    ended = [
        call
        for call in made
        if call.choice.strategy == "inter_decom" and not (ring and call.operator.op == "ag_gemm") and _goes_on(call)
    ]
    if ended:
        yield Warned(
            "largest_degree",
            f"{_named(ended)}: no more chunks than these were offered or priced, and more may be better: raise "
            "max_degree, or give times of more degrees",
        )


def _goes_on(call: Call) -> bool:
    """Whether the next legal degree, whatever the cap, is not known to be worse."""
    operator, degree = call.operator, call.choice.degree
    table = operator.inter_decom_table
    if table is not None and degree < max(point.degree for point in table):
        return False
    multiples = operator.split_extent // operator.split_multiple
    more = [d for d in divisors(multiples, min(multiples, FARTHER * operator.max_degree)) if d > degree]
    if not more:
        return False
    if table is not None:
        return True
    return more[0] > operator.max_degree and float(inter_decom_s(costs_of([operator]), more[0])[0]) < call.choice.time_s


def buffers(problem: CompassProblem, solution: CompassSolution) -> dict[str, float]:
    """Bytes on each GPU by cause that overlapping holds; every operator has its own, which all layers use."""
    held: dict[str, float] = {}
    for call in calls(problem, solution):
        stated = call.operator.overlap_bytes
        if stated is None or not call.overlaps:
            continue
        for cause, amount in (stated if isinstance(stated, dict) else {"overlap buffer": stated}).items():
            held[cause] = held.get(cause, 0.0) + amount
    return held


def _buffers_exceed_memory(problem: CompassProblem, solution: CompassSolution) -> Iterator[Warned]:
    capacity, used = problem.memory_capacity_bytes, sum(buffers(problem, solution).values())
    if capacity is not None and used > capacity:
        yield Warned(
            "buffers_exceed_memory",
            f"the buffers of overlap take {in_bytes(used)} on each GPU, which has {in_bytes(capacity)}: the model does "
            "not limit them; keep operators in sequence by allowed_strategies",
        )


def _named(made: list[Call]) -> str:
    first = ", ".join(call.operator.id for call in made[:3])
    return first if len(made) <= 3 else f"{first} and {len(made) - 3} more"
