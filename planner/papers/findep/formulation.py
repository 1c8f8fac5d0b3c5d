"""The free-order reference (page, "The bound for any order"): CP-SAT over every order of the tasks.

It says how far the two orders are from the best of any. Small only, two or three layers of up to four micro-batches.
What it proves holds for the layers it was given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np

from planner.errors import LimitError
from planner.papers.findep.any_order import least_makespan_s
from planner.papers.findep.problem import FindepProblem, Order, Split
from planner.papers.findep.times import Times, task_times
from solvers import cpsat
from solvers.report import Limits

BUDGET = 5.0
"""Deterministic time at effort 1; most cases take a hundredth of it."""
MOST_MICRO_BATCHES = 4
MOST_TASKS = 160
"""Larger cases may end without a proof."""
ROUNDING = 1e-6
"""What rounding durations may take off the bound, relative to it."""

_FINEST = 2**40
"""Steps of a common grid that the sum of all durations may have."""

N = TypeVar("N", int, float)


class Task(NamedTuple):
    """One task: its kind (a, s, x, e, y), layer t, micro-batch i and chunk j (0 for a and s)."""

    kind: str
    t: int
    i: int
    j: int = 0


@dataclass(frozen=True)
class FreeOrder:
    """What any order of the tasks can do [s]: the best found, a proved lower bound, and the order that was given.

    ``proved``: nothing is faster than ``makespan_s``, up to ROUNDING where durations have no common step.
    """

    makespan_s: float
    bound_s: float
    of_order_s: float
    proved: bool


def too_large(num_layers: int, r1: int, r2: int) -> str | None:
    """Why the reference does not take a case on, None where it does."""
    if r1 > MOST_MICRO_BATCHES:
        return f"{r1} micro-batches, at most {MOST_MICRO_BATCHES} are ordered freely"
    tasks = num_layers * r1 * (2 + 3 * r2)
    return f"{tasks} tasks, at most {MOST_TASKS} are ordered freely" if tasks > MOST_TASKS else None


def free_order(
    problem: FindepProblem,
    split: Split,
    m_a: int,
    r1: int,
    r2: int,
    num_layers: int,
    limits: Limits,
    hint: Order = "AASS",
) -> FreeOrder:
    """The best of all orders of one candidate on its first layers, from one order on.

    A budget that ends early leaves the order given and the page's own bound. Raises LimitError (time_limit) when the
    wall clock ends it and ``keep_best`` is off.
    """
    times = task_times(problem, split, m_a, r2)
    d = dict(zip("asxey", _seconds(times), strict=True))
    before = _precedences(num_layers, r1, r2, problem.shared_expert is not None)
    given = _in_order(before, hint)
    of_order_s = _makespan(before, given, d)
    simple_s = float(least_makespan_s(times, num_layers, np.array(r1), np.array(r2)))
    step_s, exact = _step(d, before, simple_s)
    # Rounded down: every schedule of the true durations is one of these, so their optimum bounds it from below.
    p = {kind: math.floor(Fraction(value) / step_s) for kind, value in d.items()}
    answer, tasks = _solve(before, p, _starts(before, given, p), limits)
    if answer.timed_out and not limits.keep_best:
        raise LimitError(f"the time limit of {limits.time_limit_s} s ended the free-order reference", code="time_limit")
    makespan_s = of_order_s
    if answer.values is not None:
        start = dict(zip(tasks, answer.values, strict=True))
        # Ties, which only durations of 0 make, keep what waits behind what it waits for.
        found = sorted(
            tasks, key=lambda task: (start[task], start[task] + p[task.kind], task.t, "asxey".index(task.kind))
        )
        makespan_s = min(makespan_s, _makespan(before, found, d))
    bound_s = min(makespan_s, max(simple_s, float(max(0, math.ceil(answer.bound - 0.5)) * step_s)))
    proved = makespan_s <= bound_s * (1 + 1e-9 + (0.0 if exact else ROUNDING))
    return FreeOrder(makespan_s, bound_s, of_order_s, proved)


Precedences = Mapping[Task, tuple[Task, ...]]
"""Every task, and what it waits for, which comes earlier in the mapping (eq. 5)."""


def _precedences(T: int, r1: int, r2: int, shared: bool) -> Precedences:
    before: dict[Task, tuple[Task, ...]] = {}
    for t in range(T):
        for i in range(r1):
            last = [Task("y", t - 1, i, j) for j in range(r2)] + ([Task("s", t - 1, i)] if shared else [])
            before[Task("a", t, i)] = tuple(last) if t else ()
            if shared:
                before[Task("s", t, i)] = (Task("a", t, i),)
            for j in range(r2):
                before[Task("x", t, i, j)] = (Task("a", t, i),)
                before[Task("e", t, i, j)] = (Task("x", t, i, j),)
                before[Task("y", t, i, j)] = (Task("e", t, i, j),)
    return before


def _in_order(tasks: Iterable[Task], order: Order) -> list[Task]:
    """The tasks so that each resource serves them in one of the two orders."""

    def rank(task: Task) -> tuple[int, ...]:
        on_attention = task.kind in "as"
        kind = "asxey".index(task.kind)
        if order == "AASS" or not on_attention:
            return task.t, not on_attention, kind, task.i, task.j
        return task.t, not on_attention, task.i, kind, task.j

    return sorted(tasks, key=rank)


def _starts(before: Precedences, order: Iterable[Task], d: Mapping[str, N]) -> dict[Task, N]:
    """The earliest starts when every resource serves its tasks in this order."""
    start: dict[Task, N] = {}
    free: dict[str, N] = {}
    for task in order:
        resource = _RESOURCE[task.kind]
        ready = max((start[other] + d[other.kind] for other in before[task]), default=d[task.kind] * 0)
        start[task] = max(ready, free.get(resource, ready))
        free[resource] = start[task] + d[task.kind]
    return start


def _makespan(before: Precedences, order: Iterable[Task], d: Mapping[str, float]) -> float:
    return max(start + d[task.kind] for task, start in _starts(before, order, d).items())


def _seconds(times: Times) -> tuple[float, ...]:
    columns = (times.attention_s, times.shared_s, times.a2e_s, times.expert_s, times.e2a_s)
    return tuple(float(value) for value in columns)


def _step(d: Mapping[str, float], tasks: Iterable[Task], least_s: float) -> tuple[Fraction, bool]:
    """Seconds of one unit of the model's time, and whether all durations are whole units.

    Where they share no step: a makespan is the sum of a chain of tasks, so rounding down takes off less than one unit
    a task, and units of ROUNDING x least_s / tasks keep it below ROUNDING of any makespan.
    """
    used = [task.kind for task in tasks]
    values = [Fraction(d[kind]) for kind in sorted(set(used))]
    denominator = math.lcm(*(value.denominator for value in values))
    step = Fraction(math.gcd(*(int(value * denominator) for value in values)), denominator)
    if sum(Fraction(d[kind]) for kind in used) / step <= _FINEST:
        return step, True
    return Fraction(ROUNDING * least_s / len(used)), False


def _solve(
    before: Precedences, p: Mapping[str, int], hint: Mapping[Task, int], limits: Limits
) -> tuple[cpsat.Answer, list[Task]]:
    """The model of page equation 5 without a given order: D, at most that of the hint; values are the starts τ.

    Tasks of one kind and layer are alike, and so are micro-batches. Reading the slots that a schedule gives them in
    order of time, and giving them to (i, j) in lexicographic order, keeps every constraint: when the m-th of one kind
    starts, m of the kind it waits for have ended, so the m-th of those has. No schedule is lost by asking for that
    order inside each kind and layer.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    horizon = max(start + p[task.kind] for task, start in hint.items())
    tau = {task: model.new_int_var(0, horizon, str(task)) for task in before}
    end = {task: tau[task] + p[task.kind] for task in before}
    for resource in sorted(set(_RESOURCE.values())):
        served = [task for task in before if _RESOURCE[task.kind] == resource]
        model.add_no_overlap([model.new_fixed_size_interval_var(tau[task], p[task.kind], str(task)) for task in served])
    for task, waited_for in before.items():
        for other in waited_for:
            model.add(tau[task] >= end[other])
    alike: dict[tuple[str, int], Task] = {}
    for task in before:
        previous = alike.get((task.kind, task.t))
        if previous is not None:
            model.add(tau[task] >= end[previous])
        alike[task.kind, task.t] = task
    D = model.new_int_var(0, horizon, "D")
    T = 1 + max(task.t for task in before)
    for task in before:
        if task.t == T - 1:
            model.add(end[task] <= D)
    for task, start in hint.items():
        model.add_hint(tau[task], start)
    model.minimize(D)
    tasks = list(before)
    return cpsat.run(model, [tau[task] for task in tasks], limits, BUDGET), tasks


_RESOURCE = {"a": "AG", "s": "AG", "x": "A2E", "e": "EG", "y": "E2A"}
