"""The ``costs`` of a problem file: replica layouts with their stage times, and what switching and syncing take."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.attribution import Causes, Sources
from planner.papers.bidirl.time_kinds import RolloutTime, Seconds, TrainTime
from planner.validation import Document, Identity, Many, fault, refuse_duplicates

MAX_GPUS = 65_536
MAX_LAYOUTS = 256
"""Of one role."""

Bytes = Annotated[float, Field(ge=0, le=1e24)]
ByCause = Annotated[Causes | None, Field(description="memory_bytes by cause, for the reader; null: not known")]


class _Layout(Document):
    id: Identity
    gpus: int = Field(ge=1, le=MAX_GPUS, description="|rho|: of one replica")
    memory_bytes: Bytes = Field(description="on its fullest GPU")
    memory_causes: ByCause = None


class RolloutLayout(_Layout):
    """How a replica that generates is laid out."""

    time: RolloutTime = Field(description="M_r")


class TrainLayout(_Layout):
    """How a replica that trains is laid out."""

    time: TrainTime = Field(description="M_t")


class LendTrain(Document):
    """Costs to lend pool T to rollout."""

    in_s: Seconds = Field(description="C_in: until the lent GPUs generate")
    out_s: Seconds = Field(description="C_out: until they can train again")
    sources: Sources | None = Field(default=None, description="shares by source, for the reader; null: stated")


class LendRollout(LendTrain):
    """Costs to lend pool R to training."""

    grad_s: Seconds = Field(description="C_grad: to merge gradients of the lent GPUs")


class Switch(Document):
    """Measured costs of a hot switch; needed of a direction that ``hot_switch`` allows."""

    rollout_on_train: LendTrain | None = Field(default=None, description="pool T lent to rollout")
    train_on_rollout: LendRollout | None = Field(default=None, description="pool R lent to training")


class Costs(Document):
    """Layouts and what they take."""

    kind: Literal["explicit"] = "explicit"
    weight_sync_s: Seconds = Field(description="w: new weights from pool T to pool R; both stand")
    colocated_switch_s: Seconds = Field(default=0.0, description="all GPUs from one role to the other; twice a step")
    rollout_layouts: Many[RolloutLayout]
    train_layouts: Many[TrainLayout]
    switch: Switch = Switch()
    sync_sources: Sources | None = Field(default=None, description="of weight_sync_s; null: stated")

    @model_validator(mode="after")
    def _layouts_differ(self) -> Self:
        for name in ("rollout_layouts", "train_layouts"):
            layouts = getattr(self, name)
            if not 1 <= len(layouts) <= MAX_LAYOUTS:
                raise fault(f"expected 1 to {MAX_LAYOUTS} layouts, got {len(layouts)}", where=name)
            refuse_duplicates([layout.id for layout in layouts], "id", name)
        return self
