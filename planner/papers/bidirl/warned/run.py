"""What the staleness, the replay and the thresholds of a plan say of it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.paper import Warned
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.solution import PLANNED, BidirlSolution
from planner.units import percent, seconds

FASTER = 0.01
"""Of the makespan: what is less is not worth a word."""


def run_warned(problem: BidirlProblem, solution: BidirlSolution) -> Iterator[Warned]:
    """staleness_not_judged, faster_policy, lending_never_pays, stale_batches, short_run."""
    yield from _staleness_not_judged(problem)
    yield from _faster_policy(solution)
    yield from _lending_never_pays(problem, solution)
    yield from _stale_batches(problem)
    yield from _short_run(problem)


def _staleness_not_judged(problem: BidirlProblem) -> Iterator[Warned]:
    """Objective (1) where both stages do not wholly overlap."""
    if problem.objective == "lambda_pipe" and problem.staleness < 1:
        yield Warned(
            "staleness_not_judged",
            f"lambda_pipe takes both stages to overlap, which they do not at staleness {problem.staleness:g}: another "
            'split may have a shorter step; state objective "period"',
        )


def _faster_policy(solution: BidirlSolution) -> Iterator[Warned]:
    """What the replay found faster and the runtime of the plan cannot do."""
    rows = solution.simulation or {}
    if solution.policy is None or solution.policy not in rows:
        return
    own_s = rows[solution.policy].makespan_s
    faster = {name: row.makespan_s for name, row in rows.items() if name not in PLANNED}
    if faster:
        name = min(faster, key=lambda policy: (faster[policy], policy))
        if faster[name] < own_s * (1 - FASTER):
            yield Warned(
                "faster_policy",
                f"{name} ends the replay after {seconds(faster[name])}, {solution.policy} at this split after "
                f"{seconds(own_s)}: plan compare shows both",
            )


def _lending_never_pays(problem: BidirlProblem, solution: BidirlSolution) -> Iterator[Warned]:
    """Directions whose compatibility limits the splits for nothing."""
    stated = solution.thresholds
    if stated is None:
        return
    allowed = problem.hot_switch
    idle = [
        name
        for name, may, least in (
            ("rollout_on_train", allowed.rollout_on_train, stated.min_missing_groups),
            ("train_on_rollout", allowed.train_on_rollout, stated.min_remaining_chunks),
        )
        if may and least is None
    ]
    if idle:
        yield Warned(
            "lending_never_pays",
            f"{' and '.join(idle)}: no backlog of one batch is worth the switch; without "
            f"hot_switch.{' and hot_switch.'.join(idle)} more splits may be allowed",
        )


def _stale_batches(problem: BidirlProblem) -> Iterator[Warned]:
    staleness = problem.staleness
    if staleness >= 1:
        whole = math.floor(staleness)
        versions = "1 version" if whole == 1 else f"{whole} versions"
        yield Warned(
            "stale_batches",
            f"batches are up to {versions} old when they are trained on, which costs nothing here and may cost reward",
        )
    elif staleness > 0:
        yield Warned(
            "stale_batches",
            f"{percent(staleness)} of a batch is generated one version early, which costs nothing here and may cost "
            "reward",
        )


def _short_run(problem: BidirlProblem) -> Iterator[Warned]:
    steps, after = problem.simulation.steps, math.ceil(min(problem.staleness, 1e9))
    if steps <= max(1, after) + after:
        yield Warned(
            "short_run",
            f"{steps} replayed steps only fill and drain the pipeline: step_period_s is their mean; raise "
            "simulation.steps",
        )
