"""How many combinations there are and why each falls away, and that nothing better was there: where they are few."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

from planner.findings import Findings
from planner.papers.layout.checks.decision import Decision
from planner.papers.layout.checks.figures import figures, fits, shape_of
from planner.papers.layout.checks.legality import first_rule
from planner.papers.layout.checks.lists import Listed
from planner.papers.layout.checks.rules import partitions
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.solution import LayoutSolution

FEW = 2_000
"""Combinations that are told apart one by one."""
FEW_LAYOUTS, FEW_TASKS = 100, 1_000_000
"""Layouts, and tasks of them all, that are computed to the end."""


def check_counts(problem: LayoutProblem, solution: LayoutSolution, found: Findings) -> list[Listed]:
    """Each count that the solution states, where counting takes no time to speak of.

    Returns all layouts that fit, where they are few enough to be computed, else none.
    """

    def expect(field: str, stated: int | None, expected: int) -> None:
        if stated is not None and stated != expected:
            found.add("count_mismatch", f"stated {stated}, counted {expected}", field)

    lists = [getattr(problem.search, name) for name in Decision._fields[:-1]]
    combinations = prod(len(listed) for listed in lists)
    expect("combinations", solution.combinations, combinations)
    if combinations > FEW:
        return []
    excluded: Counter[str] = Counter()
    legal: list[Decision] = []
    for values in product(*lists):
        of = Decision._make((*values, ()))
        rule = first_rule(problem, of)
        if rule is None:
            cuts = partitions(problem.model.num_layers, of.pp, of.vpp, problem.search.partitions)
            legal.extend(of._replace(partition=cut) for cut in cuts)
        else:
            excluded[rule] += 1
    expect("legal", solution.legal, len(legal))
    few = len(legal) <= FEW_LAYOUTS and sum(shape_of(problem, of).tasks for of in legal) <= FEW_TASKS
    computed = figures(problem, legal) if few else {}
    room = {of: fits(problem, one.peak_memory_bytes) for of, one in computed.items()}
    excluded["memory"] = sum(has is False for has in room.values())
    open_ = sum(has is None for has in room.values())
    stated = solution.excluded
    for name in sorted(excluded.keys() | stated.keys()) if stated is not None else ():
        count = (stated or {}).get(name, 0)
        if name != "memory":
            expect(f"excluded.{name}", count, excluded[name])
        elif few and not 0 <= count - excluded[name] <= open_:
            expect("excluded.memory", count, excluded[name])
    return [Listed("search", of, computed[of]) for of, has in room.items() if has]
