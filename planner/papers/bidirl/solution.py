"""The solution document (page, section 7): the split, its figures, when to lend, and the replay of every policy."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, model_serializer

from planner.validation import Document

Policy = Literal[
    "no_borrow",
    "rollout_on_train",
    "train_on_rollout",
    "bidirectional",
    "opportunistic",
    "colocated",
    "separated_async",
    "half_split",
]
"""Page, section 3.5."""

POLICIES: tuple[Policy, ...] = get_args(Policy)
PLANNED: tuple[Policy, ...] = POLICIES[:4]
"""Those that a plan may recommend, in the order of ties."""


class Thresholds(Document):
    """From what backlog on a pool is lent; null: never, which files say too."""

    min_missing_groups: int | None = Field(description="Q: pool T is lent to rollout from so many on; null: never")
    min_remaining_chunks: int | None = Field(description="U: pool R is lent to training from so many on; null: never")

    @model_serializer
    def _with_null(self) -> dict[str, int | None]:
        """A runtime reads both: what is left out of a file might have been lost."""
        return dict(self)


class Replayed(Document):
    """What the replay of the training run gives under one policy (page, section 3.6)."""

    makespan_s: float = Field(description="completion of the last step")
    step_period_s: float = Field(description="mean of the steps between head and tail")
    rollout_idle_share: float | None = Field(default=None, description="of pool R's time up to the makespan")
    train_idle_share: float | None = Field(default=None, description="of pool T's time up to the makespan")
    train_pool_lent: int | None = Field(default=None, description="times that pool T was lent to rollout")
    rollout_pool_lent: int | None = Field(default=None, description="times that pool R was lent to training")


class BidirlSolution(Document):
    """One split. The decision: the two counts, the two layouts; all else is recomputed from them."""

    rollout_gpus: int = Field(description="g_r: pool R is GPUs 0 to g_r - 1")
    train_gpus: int = Field(description="g_t: pool T is the g_t GPUs after it")
    rollout_layout: str = Field(description="rho_r, by id")
    train_layout: str = Field(description="rho_t, by id")
    rollout_replicas: int | None = Field(default=None, description="d_r")
    train_replicas: int | None = Field(default=None, description="d_t")
    rollout_time_s: float | None = Field(default=None, description="M_r of a whole batch")
    train_time_s: float | None = Field(default=None, description="M_t of a whole batch")
    objective_s: float = Field(description="the slower of both, or the step period")
    period_s: float | None = Field(default=None, description="step period in steady state, by (2), without borrowing")
    lambda_pipe_groups_per_s: float | None = Field(default=None, description="B over the slower of both")
    fractional_bound_s: float | None = Field(default=None, description="no split of real numbers takes less")
    thresholds: Thresholds | None = None
    policy: Policy | None = Field(default=None, description="of the first four, the one whose replay ends first")
    simulation: dict[Annotated[str, Field(max_length=60)], Replayed] | None = Field(
        default=None, description="the replay by policy"
    )
    rule: Annotated[str, Field(max_length=60)] | None = Field(
        default=None, description="the baseline that chose the split; null: the best of all"
    )
