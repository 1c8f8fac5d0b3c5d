"""Bytes of a parameter in training, as problems state them."""

from __future__ import annotations

from pydantic import Field

from planner.validation import Document


class BytesPerParameter(Document):
    """What each parameter takes: weights in 16 bits, gradients in 32, and a 32-bit copy with two moments of Adam."""

    param: float = Field(default=2.0, ge=0, le=64)
    grad: float = Field(default=4.0, ge=0, le=64)
    optimizer: float = Field(
        default=12.0,
        ge=0,
        le=64,
        description="master copy and moments; 8-bit moments: 6 with a copy; 16-bit ones: 8; Muon: 8",
    )
