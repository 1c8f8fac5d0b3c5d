"""The problem file of BiDiRL in explicit costs (page, section 6), validated once at the door."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.json_text import Json
from planner.papers.bidirl.priced_layouts import (
    MAX_GPUS,
    MAX_LAYOUTS,
    Costs,
    LendRollout,
    LendTrain,
    RolloutLayout,
    Switch,
    TrainLayout,
)
from planner.papers.bidirl.time_kinds import AnyTime, Fit, Lengths, Linear, Stage, Stages, Table
from planner.papers.bidirl.training_run import Drawn, Empirical, Lognormal, Simulation
from planner.validation import Document, fault

Objective = Literal["lambda_pipe", "period"]
LayoutPolicy = Literal["minimal", "all"]
Role = Literal["rollout", "train"]

MAX_SPLITS = 2_000_000
"""Pairs of layouts times GPUs."""
MAX_CHUNKS = 10**6
"""Groups or trainer chunks of a batch: thresholds scan them all."""
MAX_DRAWS = 50_000_000
"""Responses that a simulation draws."""

Code = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
Text = Annotated[str, Field(min_length=1, max_length=400)]


class Cluster(Document):
    """The GPUs; the last node may have fewer than the others."""

    gpus: int = Field(ge=2, le=MAX_GPUS, description="G")
    gpus_per_node: int = Field(ge=1, le=MAX_GPUS, description="n")
    gpu_memory_bytes: float = Field(gt=0, le=1e24, description="of each GPU")
    memory_reserve_fraction: float = Field(default=0.1, ge=0, lt=1, description="of it, that no layout may fill")

    @property
    def usable_bytes(self) -> float:
        """What a layout may fill of one GPU."""
        return self.gpu_memory_bytes * (1 - self.memory_reserve_fraction)


class Batch(Document):
    """What one step generates and trains on."""

    prompt_groups: int = Field(ge=1, le=MAX_CHUNKS, description="B")
    responses_per_group: int = Field(default=1, ge=1, le=10**6)
    max_response_tokens: int = Field(ge=1, le=10**9, description="L: the longest response that is planned for")
    train_chunks: int = Field(ge=1, le=MAX_CHUNKS, description="N_u")


class HotSwitch(Document):
    """Which pool may be lent: then its GPUs hold whole replicas of the other role too."""

    rollout_on_train: bool = Field(default=True, description="pool T may be lent to rollout")
    train_on_rollout: bool = Field(default=True, description="pool R may be lent to training")


class BidirlProblem(Document):
    """The explicit-cost form."""

    paper: Literal["bidirl"] = "bidirl"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    cluster: Cluster
    batch: Batch
    staleness: float = Field(
        default=0.0,
        ge=0,
        le=1e6,
        description="s: 0 on-policy; below 1 the share of a batch that may be stale; else versions",
    )
    objective: Objective = Field(
        default="lambda_pipe", description="what is least: the slower stage, or the step period in steady state"
    )
    layout_policy: LayoutPolicy = Field(default="all", description="fitting layouts: the smallest of each role, or all")
    allow_idle_gpus: bool = Field(default=False, description="whether the pools may leave GPUs out")
    split_granularity_gpus: int = Field(default=1, ge=1, le=MAX_GPUS, description="rollout_gpus is a multiple of it")
    hot_switch: HotSwitch = HotSwitch()
    costs: Costs
    simulation: Simulation = Simulation()
    cautions: dict[Code, Text] | None = Field(
        default=None, description="what the reader of a plan should know of these numbers: warnings by code"
    )
    notes: Json = Field(default=None, description="kept, never read")

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        for direction in ("rollout_on_train", "train_on_rollout"):
            if getattr(self.hot_switch, direction) and getattr(self.costs.switch, direction) is None:
                raise fault(
                    f'missing field "{direction}": measured, never guessed; or hot_switch.{direction} false',
                    code="missing_field",
                    where=f"costs.switch.{direction}",
                )
        for layout in self.costs.rollout_layouts:
            mean = layout.time.mean_response_tokens if isinstance(layout.time, Lengths) else 0.0
            if mean > self.batch.max_response_tokens:
                raise fault(
                    f"expected at most batch.max_response_tokens = {self.batch.max_response_tokens}, got {mean:g}",
                    where=f"costs.rollout_layouts.{layout.id}.time.mean_response_tokens",
                )
        self._refuse_large()
        return self

    def _refuse_large(self) -> None:
        pairs = len(self.costs.rollout_layouts) * len(self.costs.train_layouts)
        if pairs * self.cluster.gpus > MAX_SPLITS:
            raise fault(
                f"expected at most {MAX_SPLITS:,} splits, got {pairs:,} pairs of layouts times "
                f"{self.cluster.gpus:,} GPUs",
                code="too_large",
                where="costs",
            )
        simulation = self.simulation
        if simulation.responses is not None:
            batches = simulation.batches or simulation.steps
            responses = batches * self.batch.prompt_groups * self.batch.responses_per_group
            if responses > MAX_DRAWS:
                raise fault(
                    f"expected at most {MAX_DRAWS:,} drawn responses, got {responses:,}: fewer batches are cycled",
                    code="too_large",
                    where="simulation.batches",
                )

    def sorted(self) -> Self:
        """The canonical form: layouts by id, and what the simulation draws written down."""
        from planner.papers.bidirl.drawing import with_drawn  # it reads problems

        costs = self.costs
        listed = {
            name: tuple(sorted(getattr(costs, name), key=lambda layout: layout.id))
            for name in ("rollout_layouts", "train_layouts")
        }
        drawn = with_drawn(self.simulation, self.batch)
        return self.model_copy(update={"costs": costs.model_copy(update=listed), "simulation": drawn})

    def layouts(self, role: Role) -> tuple[RolloutLayout | TrainLayout, ...]:
        """Those of a role, as listed."""
        return self.costs.rollout_layouts if role == "rollout" else self.costs.train_layouts


__all__ = [
    "MAX_GPUS",
    "MAX_LAYOUTS",
    "AnyTime",
    "Batch",
    "BidirlProblem",
    "Cluster",
    "Costs",
    "Drawn",
    "Empirical",
    "Fit",
    "HotSwitch",
    "LayoutPolicy",
    "LendRollout",
    "LendTrain",
    "Lengths",
    "Linear",
    "Lognormal",
    "Objective",
    "Role",
    "RolloutLayout",
    "Simulation",
    "Stage",
    "Stages",
    "Switch",
    "Table",
    "TrainLayout",
]
