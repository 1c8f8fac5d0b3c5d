"""The independent check of a plan (page, section 8), from problem and solution alone.

Nothing that planned takes part: rules, stage times, the pipeline, the tail and all bytes are computed again from the
page, for the chosen layout and for every other row that the plan lists.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.findings import Findings
from planner.paper import Violation
from planner.papers.layout.checks.complete import check_complete
from planner.papers.layout.checks.counts import check_counts
from planner.papers.layout.checks.decision import EXACT, TOLERANCE, Decision, decision_of
from planner.papers.layout.checks.figures import METRICS, Recomputed, figures, fits
from planner.papers.layout.checks.legality import faults, first_rule
from planner.papers.layout.checks.lists import Listed, check_alternatives, check_front, check_objective
from planner.papers.layout.checks.neighbours import changed, check_neighbours
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.solution import RULES, Figures, LayoutSolution
from planner.units import in_bytes

VIOLATIONS: tuple[str, ...] = (
    "outside_search",
    "partition_shape",
    *(f"rule {name}" for name in RULES if name not in ("row_not_in_table", "memory")),
    "row_not_in_table",
    "memory",
    *(f"{name}_mismatch" for name in METRICS),
    "objective_mismatch",
    "alternatives",
    "pareto",
    "pareto_dominated",
    "ratio_mismatch",
    "reason_mismatch",
    "neighbour",
    "count_mismatch",
)
"""Every code the check can report, in the order it reports them."""

CHOSEN = ""
"""Where the chosen layout stands in the solution."""


def check(problem: LayoutProblem, solution: LayoutSolution) -> list[Violation]:
    """Everything the solution says that the problem refutes; empty for a correct plan. At most 100 of each code.

    Of a row that the problem does not offer no figure is computed. Figures agree within 1e-9 relative. A solution that
    names the rule it follows may be worse than what it lists, and need list nothing.
    """
    found = Findings()
    rows = dict(_rows(solution))
    offered: dict[str, Decision] = {}
    for where, row in rows.items():
        of = decision_of(row)
        wrong = faults(problem, of)
        for fault in wrong:
            found.add(fault.code, fault.message, _at(where, fault.field))
        if not wrong:
            offered[where] = of
    # All at once: layouts of one pipeline shape share its task graph.
    told = solution.rule is None or bool(solution.neighbours)
    others = changed(problem, offered[CHOSEN]) if CHOSEN in offered and told else {}
    allowed = [of for ways in others.values() for of in ways if first_rule(problem, of) is None]
    computed = figures(problem, [*offered.values(), *allowed])
    for where, of in offered.items():
        _check_figures(problem, rows[where], computed[of], where, found)
    fitting = check_counts(problem, solution, found)
    if CHOSEN in offered:
        chosen, *listed = (Listed(where, of, computed[of]) for where, of in offered.items())
        alternatives = [one for one in listed if one.where.startswith("alternatives")]
        check_alternatives(problem, solution, chosen, alternatives, fitting, found)
        check_front(solution, chosen, listed, fitting, found)
        if solution.rule is None:
            check_complete(problem, solution, len(fitting), found)
        if told:
            fitting += check_neighbours(problem, solution, chosen, others, computed, found)
        if solution.rule is None:
            check_objective(chosen, [*listed, *fitting], found)
    return found.in_order(VIOLATIONS)


def _rows(solution: LayoutSolution) -> Iterator[tuple[str, Figures]]:
    """The chosen layout and all that is listed beside it, by path."""
    yield CHOSEN, solution
    for name, listed in (("alternatives", solution.alternatives), ("pareto", solution.pareto)):
        for place, row in enumerate(listed):
            yield f"{name}.{place}", row


def _at(where: str, field: str | None) -> str | None:
    return ".".join(part for part in (where, field) if part) or None


def _check_figures(problem: LayoutProblem, row: Figures, recomputed: Recomputed, where: str, found: Findings) -> None:
    """That the layout fits, and every figure of its row."""
    peak_bytes = recomputed.peak_memory_bytes
    if fits(problem, peak_bytes) is False:
        room_bytes = problem.cluster.gpu_memory_bytes - problem.cluster.reserve_bytes
        message = f"its fullest rank holds {in_bytes(peak_bytes)}, and has room for {in_bytes(room_bytes)}"
        found.add("memory", message, _at(where, "peak_memory_bytes"))
    for name in METRICS:
        stated, expected = getattr(row, name), getattr(recomputed, name)
        # What is left of a difference has no more digits than what it is left of.
        least = EXACT * recomputed.step_time_s if name.endswith("_s") else 0.0
        if not math.isclose(stated, expected, rel_tol=TOLERANCE, abs_tol=least):
            found.add(f"{name}_mismatch", f"stated {stated!r}, recomputed {expected!r}", _at(where, name))
