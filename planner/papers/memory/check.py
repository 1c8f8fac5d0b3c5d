"""The independent check of a plan (page, section 8), from problem and solution alone.

Nothing that planned takes part: rules, bytes and seconds are worked out again from the page.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.findings import Findings
from planner.paper import Violation
from planner.papers.memory.checks.differences import differing
from planner.papers.memory.checks.recount import TOLERANCE, Recount, Stated, agree, recount_all, together
from planner.papers.memory.checks.rules import broken_modes, broken_nesting, broken_rules
from planner.papers.memory.problem import STATES, MemoryProblem
from planner.papers.memory.solution import MemorySolution
from planner.units import told

VIOLATIONS: tuple[str, ...] = (
    "mode_not_allowed",
    "nesting",
    "mode_dims",
    "offload_order",
    "no_host",
    "device_memory",
    "host_memory",
    "device_bytes_mismatch",
    "host_bytes_mismatch",
    "communication_bytes_mismatch",
    "by_state_mismatch",
    "objective_mismatch",
    "derived_mismatch",
)
"""Every code the check can report, in the order it reports them."""


def check(problem: MemoryProblem, solution: MemorySolution) -> list[Violation]:
    """Everything the solution says that the problem refutes; empty for a correct plan.

    Figures agree within 1e-9 relative. Of modes and prefixes that do not exist no bytes are counted.
    """
    found = Findings()
    stated = stated_of(solution)
    for code, message, where in (*broken_modes(problem, stated), *broken_nesting(problem, stated)):
        found.add(code, message, where)
    exists = not found.listed
    for code, message, where in broken_rules(problem, stated):
        found.add(code, message, where)
    for message, where in differing(problem):
        found.add("derived_mismatch", message, where)
    if exists and "mode_dims" not in found.listed:
        ranks = recount_all(problem, stated)
        counted = together(ranks)
        _check_capacities(problem, counted, found)
        _check_figures(solution, counted, found)
        _check_states(solution, ranks, counted.device_bytes, found)
    return found.in_order(VIOLATIONS)


def stated_of(solution: MemorySolution) -> Stated:
    """The decision of a solution."""
    dims = solution.shard_dims
    modes = {state: getattr(solution, state) for state in STATES}
    return Stated(**modes, i_p=dims.parameters, i_g=dims.gradients, i_o=dims.optimizer)


def _check_capacities(problem: MemoryProblem, counted: Recount, found: Findings) -> None:
    places = [("device_memory", "device_bytes", counted.device_bytes, problem.capacity_bytes)]
    if problem.host is not None:
        places.append(("host_memory", "host_bytes", counted.host_bytes, problem.host.capacity_bytes))
    for code, where, needed, capacity in places:
        if needed > capacity * (1 + TOLERANCE):
            found.add(code, f"needs {told(needed, 'bytes')} of {told(capacity, 'bytes')}", where)


def _check_figures(solution: MemorySolution, counted: Recount, found: Findings) -> None:
    figures = [
        ("device_bytes_mismatch", "device_bytes", solution.device_bytes, counted.device_bytes),
        ("host_bytes_mismatch", "host_bytes", solution.host_bytes, counted.host_bytes),
        (
            "communication_bytes_mismatch",
            "communication_bytes",
            solution.communication_bytes,
            counted.communication_bytes,
        ),
        ("objective_mismatch", "overhead_s", solution.overhead_s, counted.overhead_s),
    ]
    for code, where, given, recomputed in figures:
        if not agree(given, recomputed):
            found.add(code, f"stated {given!r}, recomputed {recomputed!r}", where)


def _check_states(solution: MemorySolution, ranks: Sequence[Recount], most: float, found: Findings) -> None:
    """States are those of the fullest rank; where several are as full, of any of them."""
    stated = dict(solution.by_state)
    full = [rank.by_state for rank in ranks if agree(rank.device_bytes, most)]
    wrong = [[state for state in STATES if not agree(stated[state], each[state])] for each in full]
    if all(wrong):
        for state in wrong[0]:
            message = f"stated {stated[state]!r}, recomputed {full[0][state]!r}"
            found.add("by_state_mismatch", message, f"by_state.{state}")
