"""The exhaustive reference (page, section 4): every combination of the lists, every partition, each evaluated in full.

Slow and short: nothing of the search takes part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

from planner.errors import LimitError
from planner.papers.layout.evaluate import Evaluated, evaluate, fits
from planner.papers.layout.layouts import Layout
from planner.papers.layout.partitions import partitions
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.rules import broken_rule
from planner.papers.layout.solution import RULES
from planner.papers.layout.ties import ranked

MOST_TRIED = 200_000
"""Combinations that are tried one by one."""


@dataclass(frozen=True)
class Enumerated:
    """All there is: layouts that fit and layouts that do not, both best first, and how many broke which rule first.

    ``legal`` counts layouts, partitions told apart, that keep every rule but memory. ``excluded`` counts combinations,
    for ``memory`` layouts; in the order of the rules, without those that excluded nothing.
    """

    fitting: list[Evaluated] = field(default_factory=list)
    too_full: list[Evaluated] = field(default_factory=list)
    combinations: int = 0
    legal: int = 0
    excluded: dict[str, int] = field(default_factory=dict)


def enumerate_all(problem: LayoutProblem) -> Enumerated:
    """Every layout of the search. Raises LimitError where there are too many to try one by one."""
    total = problem.search.combinations
    if total > MOST_TRIED:
        message = (
            f"method exhaustive tries layouts one by one, {total:,} combinations here, and stops at {MOST_TRIED:,}"
        )
        raise LimitError(message, code="too_large", where="search")
    fitting: list[Evaluated] = []
    too_full: list[Evaluated] = []
    broken = dict.fromkeys(RULES, 0)
    for combination in combinations(problem):
        rule = broken_rule(problem, combination)
        if rule is not None:
            broken[rule] += 1
            continue
        for layout in cut(problem, combination):
            found = evaluate(problem, layout)
            (fitting if fits(problem, found) else too_full).append(found)
    broken["memory"] = len(too_full)
    return Enumerated(
        fitting=ranked(fitting),
        too_full=ranked(too_full),
        combinations=total,
        legal=len(fitting) + len(too_full),
        excluded={rule: count for rule, count in broken.items() if count},
    )


def combinations(problem: LayoutProblem) -> Iterator[Layout]:
    """The product of the search lists, not yet cut into stages; in the order of ties."""
    lists = problem.search
    for tp, cp, pp, vpp, ep, etp, zero_stage, recompute, micro_batch, sequence_parallel in product(
        lists.tp, lists.cp, lists.pp, lists.vpp, lists.ep, lists.etp, lists.zero_stage, lists.recompute,
        lists.micro_batch, lists.sequence_parallel,
    ):  # fmt: skip
        yield Layout(tp, cp, pp, vpp, ep, etp, zero_stage, recompute, micro_batch, sequence_parallel)


def cut(problem: LayoutProblem, combination: Layout) -> Iterator[Layout]:
    """A combination under every partition of the asked kinds."""
    kinds = problem.search.partitions
    for partition in partitions(problem.model.num_layers, combination.pp, combination.vpp, kinds):
        yield replace(combination, partition=partition)
