"""What a plan lists beside its layout: alternatives and the front, each against the chosen one and all the others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from planner.findings import Findings
from planner.papers.layout.checks.decision import EXACT, TOLERANCE, Decision
from planner.papers.layout.checks.figures import Recomputed
from planner.papers.layout.checks.words import expected_words
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.solution import LayoutSolution


class Listed(NamedTuple):
    """A row that the problem offers: where it stands, what it decides and what that comes to."""

    where: str
    of: Decision
    figures: Recomputed


def check_alternatives(
    problem: LayoutProblem,
    solution: LayoutSolution,
    chosen: Listed,
    listed: Sequence[Listed],
    known: Sequence[Listed],
    found: Findings,
) -> None:
    """No more than ``keep``, none twice, none the chosen one, best first; and none that is ``known`` is missing."""
    if len(solution.alternatives) > problem.search.keep:
        message = f"expected at most search.keep = {problem.search.keep}, got {len(solution.alternatives)}"
        found.add("alternatives", message, "alternatives")
    for where in _again([chosen, *listed]):
        found.add("alternatives", "this layout is listed before", where)
    for one, next_ in pairwise(listed):
        if is_before(next_, one):
            found.add("alternatives", "expected the best first, and this one is better than the last", next_.where)
    if len(listed) == len(solution.alternatives) > 0:
        there = {chosen.of, *(one.of for one in listed)}
        for one in known:
            full = len(listed) >= problem.search.keep
            if one.of not in there and (not full or is_before(one, listed[-1])):
                found.add("alternatives", f"{one.of} is missing: {_figures(one)}", "alternatives")
    _check_words(solution, chosen, listed, found)


def check_front(
    solution: LayoutSolution, chosen: Listed, others: Sequence[Listed], known: Sequence[Listed], found: Findings
) -> None:
    """Of the rows of ``pareto``: fastest first, none twice, none beaten, and what no row beats is among them.

    Compared with all that the plan lists, ``others``, and with layouts that are ``known`` beside them.
    """
    front = [one for one in others if one.where.startswith("pareto")]
    for where in _again(front):
        found.add("pareto", "this layout is listed before", where)
    for one, next_ in pairwise(front):
        if next_.figures.step_time_s < one.figures.step_time_s * (1 - TOLERANCE):
            found.add("pareto", "expected the fastest first", next_.where)
    everything = [chosen, *others, *known]
    for one in front:
        by = next((other for other in everything if _beats(other, one)), None)
        if by is not None:
            message = f"beaten by {by.of}: {_figures(by)} against {_figures(one)}"
            found.add("pareto_dominated", message, one.where)
    for one in everything if len(front) == len(solution.pareto) > 0 else ():
        if not any(_covers(other, one) for other in front):
            found.add("pareto", f"{one.of} is beaten by no row and is not among them", "pareto")
    _check_words(solution, chosen, front, found)


def check_objective(chosen: Listed, others: Sequence[Listed], found: Findings) -> None:
    """That the plan lists nothing better than what it chose; that nothing better exists is not proved again."""
    for one in others:
        if is_before(one, chosen):
            message = f"{one.of} is better: {_figures(one)} against {_figures(chosen)}"
            found.add("objective_mismatch", message, one.where)


def _check_words(solution: LayoutSolution, chosen: Listed, listed: Sequence[Listed], found: Findings) -> None:
    """The ratio of each row, and that its reason calls just those as fast that are."""
    rows = {"alternatives": solution.alternatives, "pareto": solution.pareto}
    for one in listed:
        name, place = one.where.split(".")
        row = rows[name][int(place)]
        time_s, chosen_s = one.figures.step_time_s, chosen.figures.step_time_s
        ratio = ratio_of(time_s, chosen_s)
        if not math.isclose(row.ratio, ratio, rel_tol=TOLERANCE):
            found.add("ratio_mismatch", f"stated {row.ratio!r}, recomputed {ratio!r}", f"{one.where}.ratio")
        ties, slower = math.isclose(time_s, chosen_s, rel_tol=EXACT), time_s > chosen_s * (1 + TOLERANCE) * (1 + EXACT)
        begins = "chosen" if one.of == chosen.of else "as fast" if ties else ""
        if not row.reason.startswith(begins) or (slower and row.reason.startswith(("chosen", "as fast"))):
            message = f'of a step {ratio:.9g} times as long it says "{row.reason[:80]}"'
            found.add("reason_mismatch", message, f"{one.where}.reason")
        elif one.of != chosen.of:
            expected = expected_words(row, solution, on_front=name == "pareto")
            if expected is not None:
                message = f'expected {expected}, got "{row.reason[:80]}"'
                found.add("reason_mismatch", message, f"{one.where}.reason")


def ratio_of(step_time_s: float, chosen_s: float) -> float:
    """Of two steps; 1 where neither takes any time."""
    return step_time_s / chosen_s if chosen_s > 0 else 1.0


def _again(listed: Sequence[Listed]) -> Iterator[str]:
    seen = set()
    for one in listed:
        if one.of in seen:
            yield one.where
        seen.add(one.of)


def is_before(one: Listed, other: Listed) -> bool:
    """Whether one certainly comes before another: less time, then less memory, then the order of ties."""
    for mine, its in (
        (one.figures.step_time_s, other.figures.step_time_s),
        (one.figures.peak_memory_bytes, other.figures.peak_memory_bytes),
    ):
        if not math.isclose(mine, its, rel_tol=EXACT):
            return mine < its * (1 - TOLERANCE) * (1 - EXACT)
    return one.of.place < other.of.place


def _beats(one: Listed, other: Listed) -> bool:
    """No slower and no larger, and certainly faster or smaller."""
    time_s, its_s = one.figures.step_time_s, other.figures.step_time_s
    bytes_, its_bytes = one.figures.peak_memory_bytes, other.figures.peak_memory_bytes
    if time_s > its_s or bytes_ > its_bytes:
        return False
    return time_s < its_s * (1 - TOLERANCE) or bytes_ < its_bytes * (1 - TOLERANCE)


def _covers(one: Listed, other: Listed) -> bool:
    """No slower and no larger, as far as figures that tie can tell."""
    more = (1 + TOLERANCE) * (1 + EXACT)
    return (
        one.figures.step_time_s <= other.figures.step_time_s * more
        and one.figures.peak_memory_bytes <= other.figures.peak_memory_bytes * more
    )


def _figures(one: Listed) -> str:
    return f"{one.figures.step_time_s:.6g} s and {one.figures.peak_memory_bytes / 1e9:.6g} GB"
