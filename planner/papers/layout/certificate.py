"""The lower bounds behind a plan's certificate (page, section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from planner.errors import LimitError
from planner.paper import Bound
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.rules import needed_kinds
from planner.papers.layout.search.best import best
from planner.papers.layout.search.candidates import candidates
from planner.papers.layout.search.evaluations import Evaluations
from planner.papers.layout.solution import LayoutSolution
from planner.papers.layout.table import Row


def bounds(problem: LayoutProblem, solution: LayoutSolution, certify: bool, effort: float) -> tuple[Bound, ...]:
    """What no layout can be below, legal or not; and the best of all that are legal and fit, by the search alone.

    The search itself cuts nothing but by rules, by memory and by (6), so that its own bound is the step it found. Where
    it has run on these very prices it is not run again, unless ``certify`` asks for that.
    """
    del solution, effort
    shared = Bound(shared_work_s(problem), "combinatorial", "the work of a step shared evenly by all GPUs")
    least_s = _least_step_s(problem, anew=certify)
    if least_s is None:
        return (shared,)
    return (shared, Bound(least_s, "exhaustive", "every layout that keeps the rules and fits", attained=True))


def _least_step_s(problem: LayoutProblem, *, anew: bool) -> float | None:
    """The best step; None where nothing fits, or more layouts keep the rules than the search takes."""
    kept = problem.kept
    if anew or kept.least_step_s is None:
        try:
            offered = candidates(problem)
        except LimitError:
            return None
        found = best(offered, Evaluations(problem), 1)
        kept.least_step_s = found[0].step_time_s if found else None
    return kept.least_step_s


def shared_work_s(problem: LayoutProblem) -> float:
    """The least time [s] over degrees that have rows, if every pipeline rank had the same work and nothing waited.

    The busiest of p ranks works m micro-batches of at least 1/p of all layers, and m / p is B t c / (b N).
    """
    search = problem.search
    counts = {kind: sum(run.count for run in problem.model.layers if run.kind == kind) for kind in ("dense", "moe")}
    counts |= {"embedding": 1, "head": 1}
    # Of experts the cheapest: a bound may choose ep and etp for each layer.
    least_s: dict[tuple[int, int, bool, int], dict[str, float]] = {}
    for row in problem.costs.rows:
        key = (row.tp, row.cp, row.sp, row.micro_batch)
        offered = row.tp in search.tp and row.cp in search.cp and row.micro_batch in search.micro_batch
        if offered and row.sp in search.sequence_parallel:
            least = least_s.setdefault(key, {})
            least[row.kind] = min(least.get(row.kind, inf), _seconds(row))
    shared = [
        problem.batch.global_batch_size * tp * cp / (micro_batch * problem.cluster.num_gpus) * _all(counts, least)
        for (tp, cp, _, micro_batch), least in least_s.items()
        if all(kind in least for kind in needed_kinds(problem))
    ]
    return min(shared, default=0.0) + problem.costs.fixed_s


def _seconds(row: Row) -> float:
    """Forward and backward of one layer, without recomputation."""
    return row.forward_s + row.comm_forward_s + row.backward_s + row.comm_backward_s


def _all(counts: Mapping[str, int], least_s: Mapping[str, float]) -> float:
    return sum(counts[kind] * seconds for kind, seconds in least_s.items())
