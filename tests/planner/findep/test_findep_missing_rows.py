"""The field that a derived problem must change when rows are missing."""

from __future__ import annotations

from typing import Any

import pytest
from findep_derived import derived, refused

DECODE: dict[str, Any] = {"phase": "decode", "prompt_tokens": None, "context_tokens": 4096}


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"dtype": "int8"}, "derive.dtype"),
        ({"dtype": "fp32"}, "derive.dtype"),
        ({"expert_dtype": "w4a16"}, "derive.expert_dtype"),
        ({"dtype": "fp8", "expert_dtype": "nvfp4"}, "derive.expert_dtype"),
        ({"workload": "power_law_9"}, "derive.workload"),
        ({"kv_dtype": "nvfp4", "extrapolate": "refuse", **DECODE}, "derive.kv_dtype"),
        ({"extrapolate": "refuse"}, "derive.extrapolate"),
        ({"model": "deepseek-v3", "extrapolate": "refuse"}, "derive.extrapolate"),
    ],
)
def test_the_place_is_the_field_to_change(changes: Any, where: str) -> None:
    error = refused(**changes)
    assert (error.code, error.where) == ("outside_measured_range", where)


def test_rows_that_do_not_reach_name_what_the_search_asks_for() -> None:
    # 7 attention GPUs of 8 with 4 prompts of 2,048 tokens each.
    message = str(refused(extrapolate="refuse"))
    assert "up to 57,344 tokens of 7 attention GPUs: a smaller search.max_m_a, or a derive.splits of fewer" in message
    least = refused(extrapolate="refuse", search={"max_m_a": 1, "max_r1": 1, "max_r2": 1}, prompt_tokens=65536)
    assert "search.max_m_a" not in str(least)
    assert "derive.splits" in str(least)


def test_missing_rows_of_experts_do_not_blame_the_search() -> None:
    assert "search" not in str(refused(expert_dtype="w4a16"))


@pytest.mark.parametrize("model", ["deepseek-v3", "qwen3-235b-a22b"])
def test_a_preset_and_its_ranks_written_out_have_the_same_memory(model: str) -> None:
    named = derived(model=model, cluster="dgx-h200", profile=None).problem
    written = derived(model=model, cluster={"num_ranks": 8, "gpus_per_node": 8}, profile="h200-sxm").problem
    assert named.memory is not None
    assert named.memory == written.memory
