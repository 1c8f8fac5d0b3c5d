"""What a derived form may be told of dtypes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.derivation.hardware import Hardware
from planner.derivation.moe.forward import activation_dtype

Multiplied = Literal[
    "bf16", "fp16", "fp32", "tf32", "fp8", "fp8_block", "int8", "nvfp4",
    "w8a16", "w4a16", "w4a8", "w4a16_mxfp4", "w4a8_mxfp4_mxfp8",
]  # fmt: skip
"""What weights are stored and multiplied in; the profile needs tables for it."""
Stored = Literal["fp32", "bf16", "fp16", "fp8", "int8", "nvfp4"]
"""What is sent, or kept in the cache."""


class MoeHardware(Hardware):
    """The hardware of a ``derive`` object, and the dtypes that a model with experts runs in on it."""

    dtype: Multiplied = Field(default="bf16", description="of all products but the router's and the experts'")
    expert_dtype: Multiplied | None = Field(default=None, description="of the routed experts; null: dtype")
    kv_dtype: Stored | None = Field(default=None, description="of the cache; null: as activations")

    @property
    def activation_dtype(self) -> str:
        """Of activations, norms, the router, embedding and head: 16 bits unless the products are wider."""
        return activation_dtype(self.dtype)

    @property
    def experts_dtype(self) -> str:
        """Of the routed experts' products."""
        return self.expert_dtype or self.dtype

    @property
    def cache_dtype(self) -> str:
        """Of keys and values, or latents, in the cache."""
        return self.kv_dtype or self.activation_dtype
