"""That the plan of a search says all that a search has to say: nothing is left out by an empty list or a null."""

from __future__ import annotations

from planner.findings import Findings
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.solution import LayoutSolution


def check_complete(problem: LayoutProblem, solution: LayoutSolution, known: int, found: Findings) -> None:
    """Counts are there; the front has a row; and there are as many alternatives as fit, up to ``keep``.

    So many are ``known`` to fit; none where they were not computed: then it is what the plan's own counts leave.
    """
    for name in ("combinations", "legal", "excluded"):
        if getattr(solution, name) is None:
            found.add("count_mismatch", "expected what was counted, got none", name)
    if not solution.pareto:
        found.add("pareto", "expected a row at least: nothing beats the chosen layout", "pareto")
    fitting = known
    if not known and solution.legal is not None and solution.excluded is not None:
        fitting = solution.legal - solution.excluded.get("memory", 0)
    wanted = min(problem.search.keep, fitting - 1)
    if len(solution.alternatives) < wanted:
        message = f"expected {wanted} beside the chosen one of {fitting:,} that fit, got {len(solution.alternatives)}"
        found.add("alternatives", message, "alternatives")
