"""The reference (page, section 4): every mode of every state with every prefix, one by one.

Plain loops over the page's own words, slow and short. Nothing of the search takes part, nor of the memory model.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

from planner.papers.memory.checks.recount import Recount, Stated, recount_all, together
from planner.papers.memory.checks.rules import broken_modes, broken_nesting, broken_rules
from planner.papers.memory.problem import MODES, STATES, MemoryProblem

EQUAL = 1 + 1e-9
"""Figures within this ratio tie."""
ROUNDED = 1 + 1e-12
"""What rounding may put above a capacity."""


class Counted(NamedTuple):
    """One placement and what it takes."""

    stated: Stated
    takes: Recount


def enumerated(problem: MemoryProblem) -> list[Counted]:
    """Every placement that keeps the rules, whether it fits or not, in the order of ties."""
    prefixes = range(problem.num_dims + 1)
    found = []
    for parameters, gradients, optimizer, activations in product(*(MODES[state] for state in STATES)):
        for i_p, i_g, i_o in product(prefixes, repeat=3):
            stated = Stated(parameters, gradients, optimizer, activations, i_p, i_g, i_o)
            if any(any(broken(problem, stated)) for broken in (broken_modes, broken_nesting, broken_rules)):
                continue
            found.append(Counted(stated, together(recount_all(problem, stated))))
    return found


def exhausted(problem: MemoryProblem) -> Counted | None:
    """The placement of the page: least overhead of those that fit, ties by its rule; None where none fits."""
    host_bytes = problem.host.capacity_bytes if problem.host is not None else 0.0
    left = [
        one
        for one in enumerated(problem)
        if one.takes.device_bytes <= problem.capacity_bytes * ROUNDED and one.takes.host_bytes <= host_bytes * ROUNDED
    ]
    keys: tuple[Callable[[Counted], float], ...] = (
        lambda one: one.takes.overhead_s,
        lambda one: one.takes.device_bytes,
        lambda one: one.takes.host_bytes,
    )
    for key in keys:
        least = min(map(key, left), default=0.0)
        left = [one for one in left if key(one) <= least * EQUAL]
    return left[0] if left else None
