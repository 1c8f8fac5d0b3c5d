"""The solution document (page, section 7): a mode and a shard prefix for every state; the rest is recomputed."""

from __future__ import annotations

from pydantic import Field

from planner.validation import Document


class ShardDims(Document):
    """How many of the data-parallel dimensions, innermost first, each state is sharded over."""

    parameters: int = Field(description="i_P")
    gradients: int = Field(description="i_G")
    optimizer: int = Field(description="i_O")


class ByState(Document):
    """Bytes on the device, all groups together."""

    parameters: float
    gradients: float
    optimizer: float
    activations: float


class MemorySolution(Document):
    """Where every state is kept. Modes and ``shard_dims`` are the decision."""

    parameters: str
    gradients: str
    optimizer: str
    activations: str
    shard_dims: ShardDims
    device_bytes: float = Field(description="on the device, with other_bytes")
    host_bytes: float = Field(description="in the host's memory")
    communication_bytes: float = Field(description="sent by the device over collectives in a step")
    overhead_s: float = Field(description="the objective: of a step, nothing overlapped")
    by_state: ByState
