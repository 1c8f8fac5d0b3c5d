"""The derived-cost form of the problem file: a model and measurements instead of layouts, bytes and times.

``cost.py`` turns it into the explicit form. Every bound is here, in ``time_sources.py`` and in ``measurements.py``.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.derivation.bytes_per_parameter import BytesPerParameter
from planner.derivation.hardware import AnyCluster
from planner.derivation.training_code import TrainingCode
from planner.json_text import Json
from planner.papers.bidirl.problem import MAX_GPUS, Batch, HotSwitch, LayoutPolicy, Objective, Switch
from planner.papers.bidirl.time_kinds import Seconds
from planner.papers.bidirl.time_sources import RolloutSource, TrainSource
from planner.papers.bidirl.training_run import Simulation
from planner.validation import Document, Many, fault
from profiles.geometry.spec import ModelSpec

Degree = Annotated[int, Field(ge=1, le=MAX_GPUS)]
Bytes = Annotated[float, Field(ge=0, le=1e18)]
EachBytes = Annotated[float, Field(ge=0, le=64)]
Tokens = Annotated[int, Field(ge=1, le=10**9)]

OF_DEGREES = "null: powers of two that divide the model, on at most twice the GPUs of a node"


class Rollout(Document):
    """Candidate layouts of a replica that generates, and how long it takes."""

    time: RolloutSource
    tp: Many[Degree] | None = Field(default=None, description=f"tensor ranks, within a node. {OF_DEGREES}")
    pp: Many[Degree] | None = Field(default=None, description=f"pipeline stages. {OF_DEGREES}")
    concurrency: int = Field(ge=1, le=10**9, description="sequences whose cache a replica holds at once")
    weight_bytes: EachBytes = Field(default=2.0, description="of a parameter")
    cache_bytes: EachBytes = Field(default=2.0, description="of a number of the key-value cache")
    runtime_bytes: Bytes = Field(default=4e9, description="context, captured graphs, workspace: measure yours")


class Train(Document):
    """Candidate layouts of a replica that trains, and how long it takes."""

    time: TrainSource
    backend: Literal["fsdp", "megatron"] = Field(
        default="fsdp",
        description="states sharded over all GPUs of the replica; or weights cut by tp and pp, optimizer by cp too",
    )
    shard: Many[Degree] | None = Field(default=None, description=f"fsdp: GPUs of a replica. {OF_DEGREES}")
    tp: Many[Degree] | None = Field(default=None, description=f"megatron: tensor ranks, within a node. {OF_DEGREES}")
    pp: Many[Degree] | None = Field(default=None, description=f"megatron: pipeline stages. {OF_DEGREES}")
    cp: Many[Degree] = Field(default=(1,), description="context ranks; of fsdp they divide the shard")
    distributed_optimizer: bool = Field(default=True, description="megatron: optimizer states over context ranks")
    dtypes: BytesPerParameter = BytesPerParameter()
    micro_batch: int = Field(default=1, ge=1, le=65536, description="sequences of a forward, at their longest")
    micro_batches: int = Field(
        default=1, ge=1, le=1 << 20, description="of a chunk: what a pipeline may hold at once is at most that"
    )
    recompute: Literal["none", "selective", "full"] = "full"
    training_code: TrainingCode = TrainingCode()
    activation_bytes: Bytes | None = Field(default=None, description="as measured; null: by the memory model")
    runtime_bytes: Bytes = Field(default=2.5e9, description="context, communicators, what is lost: measure yours")

    @model_validator(mode="after")
    def _lists_are_of_the_backend(self) -> Self:
        for name in ("tp", "pp") if self.backend == "fsdp" else ("shard",):
            if getattr(self, name) is not None:
                raise fault(f"it goes with the other backend than {self.backend}", code="unknown_field", where=name)
        return self


class WeightSync(Document):
    """From trainer to rollout replicas: measured, or all weights once over a measured bandwidth."""

    measured_s: Seconds | None = None
    bandwidth_bytes_per_s: float | None = Field(default=None, ge=1e6, le=1e15, description="of the broadcast")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.measured_s is None) == (self.bandwidth_bytes_per_s is None):
            raise fault('expected "measured_s" or "bandwidth_bytes_per_s"', code="missing_field")
        return self


class Responses(Document):
    """Response lengths that were met, one object a line, for what a simulation draws."""

    path: str = Field(min_length=1, max_length=1000, description="a JSON Lines file beside the problem")
    field: str = Field(default="response_tokens", min_length=1, max_length=100, description="whose value is a length")
    distribution: Literal["empirical", "lognormal"] = Field(
        default="empirical", description="the lengths themselves, or the lognormal through them"
    )
    cap: Tokens | None = Field(default=None, description="longer ones are cut there; null: batch.max_response_tokens")


class Derive(Document):
    """Where layouts, bytes and times come from. What nobody can know but by measuring has to be given."""

    model: str | ModelSpec = Field(description="a built-in model's name, a config.json, or its sizes")
    cluster: AnyCluster = Field(
        description="ranks and nodes; or a preset's name, a cluster file's path, or the fields of such a file"
    )
    gpu_memory_bytes: float | None = Field(
        default=None, gt=0, le=1e18, description="null: the cluster's own, or its profile's"
    )
    memory_reserve_fraction: float = Field(default=0.1, ge=0, lt=1)
    prompt_tokens: Tokens = Field(description="of the longest prompt that is planned for")
    rollout: Rollout
    train: Train
    weight_sync: WeightSync
    colocated_switch_s: Seconds = Field(description="all GPUs from one role to the other, measured")
    switch: Switch = Field(description="costs of a hot switch, measured: of each direction that hot_switch allows")
    responses: Responses | None = Field(default=None, description="in place of simulation.responses")


class BidirlDerivedProblem(Document):
    """The derived-cost form."""

    paper: Literal["bidirl"] = "bidirl"
    format_version: str = Field(default="1.0", description="any 1.x is read")
    batch: Batch
    staleness: float = Field(default=0.0, ge=0, le=1e6)
    objective: Objective = "lambda_pipe"
    layout_policy: LayoutPolicy = "all"
    allow_idle_gpus: bool = False
    split_granularity_gpus: int = Field(default=1, ge=1, le=MAX_GPUS)
    hot_switch: HotSwitch = HotSwitch()
    derive: Derive
    simulation: Simulation = Simulation()
    notes: Json = Field(default=None, description="kept, never read")

    @model_validator(mode="after")
    def _switches_are_measured(self) -> Self:
        for direction in ("rollout_on_train", "train_on_rollout"):
            if getattr(self.hot_switch, direction) and getattr(self.derive.switch, direction) is None:
                raise fault(
                    f'missing field "{direction}": measured, never guessed; or hot_switch.{direction} false',
                    code="missing_field",
                    where=f"derive.switch.{direction}",
                )
        return self
