"""Rows that a problem's layouts need and its table lacks."""

from __future__ import annotations

from itertools import product

from planner.papers.layout.partitions import partitions
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.combinations import every_inner
from planner.papers.layout.search.exclusions import KEPT, first_broken
from planner.papers.layout.search.rows import rows_of
from planner.papers.layout.table import Key


def missing_keys(problem: LayoutProblem) -> list[Key]:
    """Sorted, of all combinations that keep the rules before the table is asked."""
    rows, found = rows_of(problem), set[Key]()
    for pp, vpp in product(problem.search.pp, problem.search.vpp):
        if partitions(problem.model.num_layers, pp, vpp, problem.search.partitions):
            for inner in every_inner(problem.search):
                kept = (first_broken(problem, inner, pp, vpp) == KEPT).any(axis=0)
                found |= rows.missing_keys(inner.only(kept))
    return sorted(found)
