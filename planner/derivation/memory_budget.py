"""The device memory that a derived problem may fill."""

from __future__ import annotations

from pydantic import Field

from planner.validation import Document


class MemoryBudget(Document):
    """What a GPU of either pool has."""

    capacity_bytes: float | None = Field(
        default=None, gt=0, le=1e18, description="null: the device memory of the cluster, else of the profile"
    )
    reserve_bytes: float = Field(
        default=4e9, ge=0, le=1e18, description="context, communication buffers, captured graphs, fragmentation"
    )
