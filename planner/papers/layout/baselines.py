"""What simpler rules give on the same problem (page, section 5): same prices, rules and evaluator, a smaller search.

A rule that asks for what the search lists leave out is followed all the same, as no answer of the problem. Of a rule
none of whose layouts fits, the one that needs least memory is shown with what it lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.paper import Baseline
from planner.papers.layout.evaluate import Evaluated
from planner.papers.layout.presentation import words
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.best import best
from planner.papers.layout.search.candidates import ROUNDING, Candidates, candidates
from planner.papers.layout.search.evaluations import Evaluations
from planner.papers.layout.solution import RULES, LayoutSolution, Rule
from planner.papers.layout.stated import figures
from planner.units import in_bytes
from solvers.report import Limits

Found = Baseline[LayoutSolution]
Values = Sequence[int | str | bool]

ALONE: dict[str, Values] = {"tp": (1,), "cp": (1,), "pp": (1,), "vpp": (1,), "sequence_parallel": (False,)}
"""Data parallelism, of experts too where the search offers that."""


@dataclass(frozen=True)
class Narrowed:
    """A problem whose search is what a rule leaves; ``added``: values that the problem's own lists do not have."""

    problem: LayoutProblem
    added: tuple[str, ...]


def baselines(problem: LayoutProblem, limits: Limits) -> list[Found]:
    """All baselines in the order of the page."""
    del limits
    replicated = _offered(problem, "zero_stage", (0, 1))
    return [
        _best(_narrowed(problem, ALONE | {"zero_stage": replicated}), "pure_dp"),
        _best(_narrowed(problem, ALONE | {"zero_stage": (3,)}), "fsdp"),
        _best(_narrowed(problem, {"zero_stage": (3,)}), "zero3"),
        _best(_narrowed(problem, {"recompute": ("full",)}), "full_recompute"),
        _megatron_rule(problem),
    ]


def _offered(problem: LayoutProblem, field: str, wanted: Values) -> Values:
    """Those of the wanted values that the search lists; all where it lists none."""
    listed = getattr(problem.search, field)
    return [value for value in wanted if value in listed] or wanted


def _narrowed(problem: LayoutProblem, wanted: dict[str, Values]) -> Narrowed:
    search = problem.search
    added = tuple(
        f"{field} {str(value).lower()}"
        for field, values in wanted.items()
        for value in values
        if value not in getattr(search, field)
    )
    lists = search.model_copy(update={field: tuple(values) for field, values in wanted.items()})
    return Narrowed(problem.model_copy(update={"search": lists}), added)


def _best(narrowed: Narrowed, name: Rule) -> Found:
    """The best of what is left."""
    offered = candidates(narrowed.problem)
    if not offered.size:
        return _failed(narrowed, offered, name)
    return _written(narrowed, best(offered, Evaluations(narrowed.problem), 1)[0], name)


def _megatron_rule(problem: LayoutProblem) -> Found:
    """Largest tp in the node that fits, then smallest pp, smallest cp, least recomputation, largest vpp; then time."""
    search = problem.search
    above = [stage for stage in search.zero_stage if stage >= 1] or [1]
    chosen: dict[str, Values] = {"micro_batch": (1,), "zero_stage": above[:1]}
    for field in ("tp", "pp", "cp", "recompute", "vpp"):
        listed: Values = getattr(search, field)
        for value in reversed(listed) if field in ("tp", "vpp") else listed:
            if candidates(_narrowed(problem, chosen | {field: (value,)}).problem).size:
                chosen[field] = (value,)
                break
    return _best(_narrowed(problem, chosen), "megatron_rule")


def _failed(narrowed: Narrowed, offered: Candidates, name: Rule) -> Found:
    """By how much the smallest is too large, or the rule that leaves nothing."""
    problem = narrowed.problem
    if not offered.legal:
        rule = max(offered.excluded, key=lambda one: (offered.excluded[one], -RULES.index(one)))
        return Baseline(
            name, None, f"no layout keeps the rules, {rule} excludes most{_beyond(narrowed)}", feasible=False
        )
    cluster = problem.cluster
    enough = offered.least_bytes * (1 + 2 * ROUNDING) + cluster.reserve_bytes
    roomy = problem.model_copy(update={"cluster": cluster.model_copy(update={"gpu_memory_bytes": enough})})
    least = best(candidates(roomy), Evaluations(roomy), 1)[0]
    over = in_bytes(least.peak_memory_bytes - cluster.capacity_bytes)
    solution = _solution(least, name)
    note = f"{words(solution)}: {over} over{_beyond(narrowed)}"
    return Baseline(name, least.step_time_s, note, solution, feasible=False, outside=bool(narrowed.added))


def _written(narrowed: Narrowed, found: Evaluated, name: Rule) -> Found:
    solution = _solution(found, name)
    note = words(solution) + _beyond(narrowed)
    if narrowed.added:
        return Baseline(name, found.step_time_s, note, outside=True)
    return Baseline(name, found.step_time_s, note, solution)


def _beyond(narrowed: Narrowed) -> str:
    return f"; the search has no {', '.join(narrowed.added)}" if narrowed.added else ""


def _solution(found: Evaluated, name: Rule) -> LayoutSolution:
    return LayoutSolution.model_validate({**figures(found), "rule": name})
