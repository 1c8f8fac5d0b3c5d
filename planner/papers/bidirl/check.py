"""The independent check of a plan (page, section 8), from problem and solution alone.

Nothing that planned takes part: rules, stage times, the best split, thresholds and the replay are computed again from
the page; the replay goes event by event. Only the draw of a run's work and lengths is the planner's own: it is part of
the problem.
"""

from __future__ import annotations

import math

import numpy as np

from planner.findings import Findings
from planner.paper import Violation
from planner.papers.bidirl.checks.backlogs import check_thresholds
from planner.papers.bidirl.checks.decided import Pools, decided
from planner.papers.bidirl.checks.policies import WAYS, check_simulation
from planner.papers.bidirl.checks.real_splits import least_between_s
from planner.papers.bidirl.checks.splits import EDGE, TIE, Judged, first_split, objective_s, period_s
from planner.papers.bidirl.checks.stage_time import batch_s
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.solution import BidirlSolution

VIOLATIONS: tuple[str, ...] = (
    "unknown_layout",
    "gpu_budget",
    "split_granularity",
    "pool_not_divisible",
    "hot_switch_incompatible",
    "replica_straddles_node",
    "memory",
    "not_minimal_layout",
    "time_not_in_table",
    "reported_replicas",
    "reported_time",
    "reported_objective",
    "reported_period",
    "reported_lambda",
    "reported_bound",
    "split_not_best",
    "fractional_bound_above_objective",
    "threshold",
    "simulation",
    "policy_not_best",
    "incomplete",
)
"""Every code the check can report, in the order it reports them."""

FOLLOWS = ("fractional_bound_s", "thresholds", "policy", "simulation")
"""Stated together or not at all."""
WEAK = 1e-5
"""Relative: by how much a bound may be weaker than it could be, where two curves add up to a valley."""
TOLERANCE = 1e-9
"""Relative difference within which figures other than a replay's agree."""


def check(problem: BidirlProblem, solution: BidirlSolution) -> list[Violation]:
    """Everything the solution says that the problem refutes; empty for a correct plan. At most 100 of each code.

    Where the decision is not one that the problem offers, that alone is reported: nothing else can be recomputed.
    Figures agree within 1e-9 relative, those of a replay within 1e-7. A solution that names the rule it follows may be
    worse than the best, and may recommend any policy.
    """
    found = Findings()
    pools = decided(problem, solution, found)
    if pools is not None:
        judged = _check_figures(problem, solution, pools, found)
        if solution.rule is None:
            _check_best(problem, pools, judged, found)
        if solution.thresholds is not None:
            check_thresholds(problem, pools, solution.thresholds, found)
        check_simulation(problem, solution, pools, found)
        _check_whole(solution, found)
    return found.in_order(VIOLATIONS)


def _check_figures(problem: BidirlProblem, solution: BidirlSolution, pools: Pools, found: Findings) -> Judged:
    """What follows from the split by itself."""
    rollout_s = batch_s(pools.rollout.time, problem.batch, pools.rollout_replicas, trains=False)
    train_s = batch_s(pools.train.time, problem.batch, pools.train_replicas, trains=True)
    both = np.array(rollout_s), np.array(train_s)
    judged_s = float(objective_s(problem, pools.rollout, *both))
    for code, field, value in (
        ("reported_replicas", "rollout_replicas", pools.rollout_replicas),
        ("reported_replicas", "train_replicas", pools.train_replicas),
        ("reported_time", "rollout_time_s", rollout_s),
        ("reported_time", "train_time_s", train_s),
        ("reported_objective", "objective_s", judged_s),
        ("reported_period", "period_s", float(period_s(problem, pools.rollout, *both))),
        ("reported_lambda", "lambda_pipe_groups_per_s", problem.batch.prompt_groups / max(rollout_s, train_s)),
    ):
        stated = getattr(solution, field)
        exact = isinstance(value, int)
        if stated is not None and not (stated == value if exact else math.isclose(stated, value, rel_tol=TOLERANCE)):
            found.add(code, f"stated {stated!r}, recomputed {value!r}", field)
    if solution.fractional_bound_s is not None:
        _check_bound(problem, solution.fractional_bound_s, judged_s, found)
    return Judged(judged_s, rollout_s + train_s)


def _check_bound(problem: BidirlProblem, bound_s: float, judged_s: float, found: Findings) -> None:
    """That no real split undercuts the bound, and that it is no weaker than it can be."""
    if bound_s > judged_s * TIE:
        message = f"{bound_s!r} s is said to be the least of any split, and this one takes {judged_s!r} s"
        found.add("fractional_bound_above_objective", message, "fractional_bound_s")
        return
    low_s, high_s = (min(end_s, judged_s) for end_s in least_between_s(problem))
    if not low_s * (1 - WEAK) <= bound_s <= high_s * TIE:
        message = f"stated {bound_s!r}, recomputed {low_s!r} to {high_s!r}"
        found.add("reported_bound", message, "fractional_bound_s")


def _check_whole(solution: BidirlSolution, found: Findings) -> None:
    """That of what follows from the decision either nothing is stated or all is, so that nothing can get lost."""
    if solution.rule is not None:
        return
    missing = [name for name in FOLLOWS if getattr(solution, name) is None]
    if 0 < len(missing) < len(FOLLOWS):
        for name in missing:
            found.add("incomplete", "expected it beside what else follows from the split", name)
    elif not missing:
        for policy in sorted({*WAYS, "colocated", "half_split"} - set(solution.simulation or {})):
            found.add("incomplete", f"expected a row of {policy}", "simulation")


def _check_best(problem: BidirlProblem, pools: Pools, judged: Judged, found: Findings) -> None:
    """That the split is the one that the page's order puts first; rounding may decide at the edge of a tie."""
    first = first_split(problem)
    if first is None or first[0] == pools:
        return
    best, best_judged = first
    for stated_s, least_s in zip(judged, best_judged, strict=True):
        if math.isclose(stated_s, least_s * TIE, rel_tol=EDGE) or math.isclose(least_s, stated_s * TIE, rel_tol=EDGE):
            return
    message = (
        f"{best.rollout_gpus}+{best.train_gpus} GPUs in {best.rollout.id} and {best.train.id} come first, "
        f"with {best_judged.objective_s!r} s to {judged.objective_s!r} s"
    )
    found.add("split_not_best", message, "rollout_gpus")
