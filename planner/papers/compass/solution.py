"""The solution document (page, "Solution fields"): one choice per operator, and the two totals."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.papers.compass.problem import Strategy
from planner.validation import Document, Many

BoundBy = Literal["comm", "gemm", "table", "given"]
Rule = Literal["sequential", "launcher_default", "fixed_d", "decompose_only", "fuse_only", "naive_closed_form", "gated"]
"""The baselines (page, section 5)."""


class RunnerUp(Document):
    """The best that was not chosen."""

    strategy: Strategy
    degree: int
    variant: str | None = None
    time_s: float


class Choice(Document):
    """What one operator does. All after ``time_s`` explain it and decide nothing."""

    operator_id: str
    strategy: str
    degree: int = Field(description="chunks; 1 unless inter_decom")
    variant: str | None = Field(default=None, description="the fused kernel")
    time_s: float = Field(description="of one call")
    bound: BoundBy | None = Field(
        default=None, description="the stage that decides at this degree; table or given where no curve does"
    )
    d_star: float | None = Field(default=None, description="the real-valued optimum of the curves")
    crossing: float | None = Field(default=None, description="the degree at which the bound stage changes")
    runner_up: RunnerUp | None = None


class Metrics(Document):
    """Seconds of a step in these operators."""

    total_time_s: float = Field(description="the objective: of all calls as chosen")
    sequential_total_time_s: float = Field(description="of all calls, each one after the other")


class CompassSolution(Document):
    """One strategy per operator, sorted by id."""

    choices: Many[Choice]
    metrics: Metrics
    rule: Rule | None = Field(
        default=None,
        description="the baseline that chose; null: the best, of equal ones the first by the tie rule",
    )
