"""What one split comes to."""

from __future__ import annotations

from dataclasses import dataclass

from planner.papers.bidirl.objective import objective_s, period_s
from planner.papers.bidirl.problem import BidirlProblem
from planner.papers.bidirl.splits import Split
from planner.papers.bidirl.stage_times.times import batch_s
from planner.papers.bidirl.stage_times.work import work_of


@dataclass(frozen=True)
class Figures:
    """Seconds of a whole batch in each role, the objective, and the step period by (2)."""

    rollout_s: float
    train_s: float
    objective_s: float
    period_s: float


def figures_of(problem: BidirlProblem, split: Split) -> Figures:
    """The figures of a split; infinite where a table does not list its replicas."""
    rollout_s = batch_s(split.rollout.time, work_of(problem.batch, "rollout"), split.rollout_replicas)
    train_s = batch_s(split.train.time, work_of(problem.batch, "train"), split.train_replicas)
    return Figures(
        float(rollout_s),
        float(train_s),
        float(objective_s(problem, split.rollout, rollout_s, train_s)),
        float(period_s(problem, split.rollout, rollout_s, train_s)),
    )
