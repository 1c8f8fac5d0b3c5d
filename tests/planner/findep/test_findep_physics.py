"""Prices of experts against what the device can do at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from findep_derived import setting

from planner.papers.findep.box import tokens_of
from planner.papers.findep.expert_cost import expert_seconds
from profiles.families import DTYPE_BYTES
from profiles.library import load, names

DECODE: dict[str, Any] = {
    "phase": "decode",
    "prompt_tokens": None,
    "context_tokens": 4096,
    "search": {"max_m_a": 1024, "max_r1": 2, "max_r2": 4},
}


@pytest.mark.parametrize("changes", [{}, DECODE], ids=["prefill", "decode"])
@pytest.mark.parametrize("model", ["deepseek-v3", "qwen3-235b-a22b"])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in names() for dtype in ("bf16", "fp8") if dtype == "bf16" or name != "a100-sxm"],
)
def test_no_expert_is_faster_than_its_device_nor_ten_times_slower(
    name: str, dtype: str, model: str, changes: Any
) -> None:
    profile = load(name)
    found = setting(profile=profile, model=model, dtype=dtype, **changes)
    tokens, experts = tokens_of(found), found.model.experts
    seconds = expert_seconds(found, tokens).seconds
    weights = 3.0 * found.model.hidden * experts.ffn
    device = profile.device
    assert device.memory_bandwidth_bytes_per_s is not None
    arithmetic = 2.0 * weights * tokens / device.peak_flop_per_s[dtype]
    # An expert that gets a token is read; of fewer tokens than one, no more than that share of the experts is.
    reading = weights * DTYPE_BYTES[dtype] * np.minimum(tokens, 1.0) / device.memory_bandwidth_bytes_per_s
    assert (seconds >= 0.95 * arithmetic).all()
    assert (seconds >= 0.95 * reading).all()
    large = tokens >= 512
    assert (seconds[large] <= 10.0 * np.maximum(arithmetic, reading)[large]).all()
    if not changes:
        assert large.any()
