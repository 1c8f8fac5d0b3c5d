"""The chosen layout with one decision changed: every one that the lists offer, and what is said of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from planner.findings import Findings
from planner.papers.layout.checks.decision import EXACT, TOLERANCE, Decision
from planner.papers.layout.checks.figures import Recomputed, fits
from planner.papers.layout.checks.legality import first_rule
from planner.papers.layout.checks.lists import Listed, is_before, ratio_of
from planner.papers.layout.checks.rules import partitions
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.solution import LayoutSolution, Neighbour
from planner.units import in_bytes

Named = tuple[str, int | str | tuple[int, ...] | None]
"""A decision and its value."""


def changed(problem: LayoutProblem, chosen: Decision) -> dict[Named, list[Decision]]:
    """By what changes, all layouts that it may come to: other stages are cut anew, in any way that is asked."""
    layers, kinds = problem.model.num_layers, problem.search.partitions
    found: dict[Named, list[Decision]] = {}
    for field in Decision._fields[:-1]:
        for value in getattr(problem.search, field):
            if value == getattr(chosen, field):
                continue
            of = Decision._make(value if name == field else old for name, old in chosen._asdict().items())
            cuts = sorted(partitions(layers, of.pp, of.vpp, kinds)) if field in ("pp", "vpp") else []
            found[field, value] = [of._replace(partition=cut) for cut in cuts] or [of]
    others = sorted(partitions(layers, chosen.pp, chosen.vpp, kinds) - {chosen.partition})
    if others:
        found["partition", None] = [chosen._replace(partition=cut) for cut in others]
    return found


def check_neighbours(
    problem: LayoutProblem,
    solution: LayoutSolution,
    chosen: Listed,
    wanted: Mapping[Named, Sequence[Decision]],
    computed: Mapping[Decision, Recomputed],
    found: Findings,
) -> list[Listed]:
    """That just those are listed which there are, ``changed``, each with its rule or its figures.

    ``computed`` has the figures of those that no rule forbids. Returns those that fit.
    """
    stated: dict[Named, tuple[str, Neighbour]] = {}
    for place, one in enumerate(solution.neighbours):
        where, name = f"neighbours.{place}", (one.field, None if one.field == "partition" else one.value)
        if name not in wanted or name in stated:
            told = "is listed twice" if name in stated else "is no other value that the lists offer"
            found.add("neighbour", f"{one.field} {str(one.value).lower()} {told}", where)
            continue
        stated[name] = (where, one)
    for field, value in (name for name in wanted if name not in stated):
        found.add("neighbour", f"{field} {str(value).lower()} is missing", "neighbours")
    order = list(wanted)
    for before, name in pairwise(stated):
        if order.index(name) < order.index(before):
            found.add("neighbour", f"expected before {before[0]} in the order of ties", stated[name][0])
    listed = []
    for name, (where, one) in stated.items():
        ways = [Listed(where, of, computed[of]) for of in wanted[name] if of in computed]
        if not ways:
            _check_forbidden(one, where, first_rule(problem, wanted[name][0]), found)
            continue
        best = _best(problem, one, ways)
        _check_figures(problem, one, chosen, best, found)
        if fits(problem, best.figures.peak_memory_bytes):
            listed.append(best)
    return listed


def _check_forbidden(one: Neighbour, where: str, rule: str | None, found: Findings) -> None:
    if one.reason != f"rule {rule}":
        found.add("neighbour", f'expected the reason "rule {rule}", got "{one.reason[:80]}"', f"{where}.reason")
    if not (one.ratio is one.step_time_s is one.peak_memory_bytes is None):
        found.add("neighbour", f"{rule} forbids it, so it has no figures", where)


def _check_figures(problem: LayoutProblem, one: Neighbour, chosen: Listed, best: Listed, found: Findings) -> None:
    """Against the best of the layouts that it may come to."""
    where = best.where
    for field, expected in (
        ("step_time_s", best.figures.step_time_s),
        ("peak_memory_bytes", best.figures.peak_memory_bytes),
        ("ratio", ratio_of(best.figures.step_time_s, chosen.figures.step_time_s)),
    ):
        stated = getattr(one, field)
        if stated is None or not math.isclose(stated, expected, rel_tol=TOLERANCE):
            found.add("neighbour", f"stated {stated!r}, recomputed {expected!r}", f"{where}.{field}")
    if one.field == "partition" and one.value != best.of.partition:
        found.add("neighbour", f"expected the best other partition, {list(best.of.partition)}", f"{where}.value")
    _check_reason(problem, one, best, found)


def _best(problem: LayoutProblem, one: Neighbour, ways: Sequence[Listed]) -> Listed:
    """The best that fits; where none does the one that takes least memory.

    Of those between which rounding decides, the one that is stated, if it is one of them.
    """
    room = [fits(problem, way.figures.peak_memory_bytes) for way in ways]
    if None in room:
        tied: Sequence[Listed] = ways
    elif not any(room):
        least_bytes = min(way.figures.peak_memory_bytes for way in ways)
        tied = [way for way in ways if way.figures.peak_memory_bytes <= least_bytes * (1 + EXACT)]
    else:
        fitting = [way for way, has in zip(ways, room, strict=True) if has]
        best = fitting[0]
        for way in fitting:
            best = way if is_before(way, best) else best
        tied = [way for way in fitting if not is_before(best, way)]
    stated = [way for way in tied if _is_stated(one, way)]
    return min(stated or tied, key=lambda way: way.of.place)


def _is_stated(one: Neighbour, way: Listed) -> bool:
    if one.field == "partition" and one.value != way.of.partition:
        return False
    return one.step_time_s is not None and math.isclose(one.step_time_s, way.figures.step_time_s, rel_tol=TOLERANCE)


def _check_reason(problem: LayoutProblem, one: Neighbour, best: Listed, found: Findings) -> None:
    """That it names memory where memory is the reason, and by how much; else anything but memory and rules."""
    cluster = problem.cluster
    over_bytes = (one.peak_memory_bytes or 0.0) - (cluster.gpu_memory_bytes - cluster.reserve_bytes)
    has_room = fits(problem, best.figures.peak_memory_bytes)
    if has_room is None:
        return
    if not has_room:
        expected = f"memory: {in_bytes(over_bytes)} over"
        if one.reason != expected:
            found.add("neighbour", f'expected "{expected}", got "{one.reason[:80]}"', f"{best.where}.reason")
    elif one.reason.startswith(("memory:", "rule ")):
        found.add("neighbour", f'it fits and keeps the rules, and says "{one.reason[:80]}"', f"{best.where}.reason")
