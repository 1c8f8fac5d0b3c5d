"""What a derived form may be told of dtypes."""

from __future__ import annotations

from typing import Literal

Multiplied = Literal[
    "bf16", "fp16", "fp32", "tf32", "fp8", "fp8_block", "int8", "nvfp4",
    "w8a16", "w4a16", "w4a8", "w4a16_mxfp4", "w4a8_mxfp4_mxfp8",
]  # fmt: skip
"""What weights are stored and multiplied in; the profile needs tables for it."""
Stored = Literal["fp32", "bf16", "fp16", "fp8", "int8", "nvfp4"]
"""What is sent, or kept in the cache."""
