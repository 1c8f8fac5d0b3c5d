"""The training job that byte fields were derived from: a model, how it is cut, its batch and its dtypes.

An explicit problem that was derived keeps it, so that the check computes every coefficient again from it alone.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.derivation.bytes_per_parameter import BytesPerParameter
from planner.derivation.models import AnyModel
from planner.derivation.training_code import TrainingCode
from planner.memory.in_flight import V_CHUNKS, V_SHAPED, Schedule
from planner.validation import Document, fault

MAX_SEQUENCE = 1 << 24
MAX_MICRO_BATCHES = 1 << 20

Degree = Annotated[int, Field(ge=1, le=65536)]


class Layout(Document):
    """How the model is cut, and which rank of the pipeline is looked at."""

    tp: Degree = Field(default=1, description="t: tensor parallel ranks")
    cp: Degree = Field(default=1, description="c: context parallel ranks")
    pp: Degree = Field(default=1, description="p: pipeline stages")
    vpp: Degree = Field(default=1, description="v: chunks of layers that a stage holds; two of zbv, v_half, v_min")
    ep: Degree = Field(default=1, description="e: ranks that share the experts of a layer")
    etp: Degree = Field(default=1, description="u: ranks that share each expert")
    sequence_parallel: bool = Field(default=True, description="norms and residuals are cut by tp too")
    schedule: Schedule | None = Field(default=None, description="null: 1f1b, or interleaved where vpp > 1")
    rank: int | None = Field(
        default=None, ge=0, le=65535, description="pipeline rank; null: all of them, which run the same placement"
    )

    @model_validator(mode="after")
    def _rank_exists(self) -> Self:
        if self.rank is not None and self.rank >= self.pp:
            raise fault(f"expected a rank of 0 to pp - 1 = {self.pp - 1}, got {self.rank}", where="rank")
        if self.v_shaped and (self.pp == 1 or self.vpp != V_CHUNKS):
            expected = "vpp = 2 and a pipeline" if self.pp == 1 else "vpp = 2"
            got = f"vpp = {self.vpp}" + (", pp = 1" if self.pp == 1 else "")
            raise fault(f"{self.order} places two chunks a rank as a V: expected {expected}, got {got}", where="vpp")
        if self.vpp > 1 and self.pp == 1:
            raise fault(f"vpp needs a pipeline: expected vpp = 1 where pp = 1, got {self.vpp}", where="vpp")
        if self.vpp > 1 and self.schedule == "1f1b":
            raise fault(f"1f1b has one chunk a rank: expected vpp = 1, got {self.vpp}", where="vpp")
        return self

    @property
    def order(self) -> Schedule:
        """The schedule, by its own name."""
        return self.schedule or ("interleaved" if self.vpp > 1 else "1f1b")

    @property
    def v_shaped(self) -> bool:
        """Whether the second chunk of a rank runs back: rank r has stages r and 2p - 1 - r."""
        return self.order in V_SHAPED

    @property
    def norm_ranks(self) -> int:
        """q: ranks that share what is not multiplied."""
        return self.tp if self.sequence_parallel else 1


class Batch(Document):
    """What a rank is given in a step."""

    sequence_length: int = Field(ge=1, le=MAX_SEQUENCE, description="s: tokens; of an image or a video its own")
    micro_batch: int = Field(default=1, ge=1, le=65536, description="b: sequences")
    num_micro_batches: int = Field(default=1, ge=1, le=MAX_MICRO_BATCHES, description="m: per step")


class Job(Document):
    """One rank of a training job."""

    model: AnyModel
    layout: Layout = Layout()
    batch: Batch
    dtypes: BytesPerParameter = Field(default=BytesPerParameter(), description="bytes per parameter")
    recompute: Literal["none", "selective"] = Field(default="none", description="what kept activations mean")
    training_code: TrainingCode = Field(default=TrainingCode(), description="what it keeps for the backward")
    load_factor: float = Field(
        default=1.0, ge=1, le=1000, description="tokens of the fullest rank of experts over the mean"
    )
