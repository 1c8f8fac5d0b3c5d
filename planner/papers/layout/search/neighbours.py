"""The chosen layout with one decision changed at a time, and what that does (page, section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.papers.layout.bound import pipeline_bound_s
from planner.papers.layout.evaluate import Evaluated, evaluate, fits
from planner.papers.layout.layouts import TIE_ORDER, Layout
from planner.papers.layout.partitions import partitions
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.reasons import Losses
from planner.papers.layout.rules import broken_rule
from planner.papers.layout.search.evaluations import Evaluations
from planner.papers.layout.solution import Neighbour
from planner.papers.layout.stated import ratio
from planner.papers.layout.ties import EQUAL, ranked

CUT_BY = ("pp", "vpp")
"""Decisions after which layers are cut anew: of all ways to cut them the best is shown."""


def neighbours(evaluations: Evaluations, losses: Losses) -> list[Neighbour]:
    """Every other value of every decision, in the order of ties; of other partitions the best alone."""
    problem, chosen = evaluations.problem, losses.chosen
    found = []
    for field, changed in _changed(problem, chosen.layout):
        rule = broken_rule(problem, changed)
        if rule is not None:
            found.append(Neighbour(field=field, value=getattr(changed, field), reason=f"rule {rule}"))
            continue
        layouts = _cut(problem, changed, chosen.layout, field)
        if not layouts:
            continue
        one = best_of(evaluations, layouts)
        found.append(
            Neighbour(
                field=field,
                value=getattr(one.layout, field),
                reason=losses.why(one) if fits(problem, one) else losses.too_large(one),
                ratio=ratio(one, chosen),
                step_time_s=one.step_time_s,
                peak_memory_bytes=one.peak_memory_bytes,
            )
        )
    return found


def best_of(evaluations: Evaluations, layouts: Sequence[Layout]) -> Evaluated:
    """Of layouts that keep the rules the best that fits; where none does the one that takes least memory.

    Replayed are, in the order of their bounds, only those that may be it.
    """
    problem = evaluations.problem
    if len(layouts) == 1:
        return evaluations.of(layouts[0])
    unplayed = [evaluate(problem, layout, 0.0) for layout in layouts]
    fitting = [one for one in unplayed if fits(problem, one)]
    if not fitting:
        least = min(unplayed, key=lambda one: (one.peak_memory_bytes, one.layout.tie_key))
        return evaluations.of(least.layout)
    bounds = [
        one.step_time_s + pipeline_bound_s(one.stages, one.layout.pp, one.sizes.num_micro_batches) for one in fitting
    ]
    best: list[Evaluated] = []
    for place in sorted(range(len(fitting)), key=lambda place: bounds[place]):
        if best and bounds[place] > best[0].step_time_s * (1 + EQUAL):
            break
        best = ranked([*best, evaluations.of(fitting[place].layout)])[:1]
    return best[0]


def _changed(problem: LayoutProblem, chosen: Layout) -> Iterator[tuple[str, Layout]]:
    """The chosen layout with another value of a decision, which is named; of partitions once."""
    for field in TIE_ORDER:
        if field == "partition":
            yield field, chosen
            continue
        for value in getattr(problem.search, field):
            if value != getattr(chosen, field):
                yield field, replace(chosen, **{field: value})


def _cut(problem: LayoutProblem, changed: Layout, chosen: Layout, field: str) -> list[Layout]:
    """With the chosen partition, unless it is what changes or what other stages need."""
    if field not in (*CUT_BY, "partition"):
        return [changed]
    ways = partitions(problem.model.num_layers, changed.pp, changed.vpp, problem.search.partitions)
    return [replace(changed, partition=way) for way in ways if field != "partition" or way != chosen.partition]
