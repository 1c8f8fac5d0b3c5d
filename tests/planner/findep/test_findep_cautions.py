"""What a derived problem says of its own prices, and the plan repeats."""

from __future__ import annotations

from typing import Any

import pytest
from findep_derived import derived

from planner.documents import canonical_bytes
from planner.envelope import dump_model
from planner.papers.findep.cautions import cautions_of
from planner.papers.findep.engines import solve
from planner.papers.findep.presentation import warnings
from planner.papers.findep.problem import FindepProblem
from planner.validation import validate
from solvers.report import Limits

SPLIT = [{"attention_gpus": 4, "expert_gpus": 4}]
DECODE: dict[str, Any] = {"phase": "decode", "prompt_tokens": None, "context_tokens": 4096}


def test_experts_priced_slower_in_a_narrower_dtype_are_a_warning_of_the_plan() -> None:
    # Rows of Qwen3-235B on H200: 16,384 tokens take 17.28 ms in fp8 and 9.03 ms in bf16.
    made = derived(expert_dtype="fp8", splits=SPLIT).problem
    text = cautions_of(made)["narrow_dtype_slower"]
    assert "times slower in fp8 than in bf16" in text
    times = float(text.partition("priced ")[2].partition(" times")[0])
    assert 1.7 < times < 3.5
    assert "vllm_modeloptfp8moe_flashinfer_cutlass" in text
    assert "derive.expert_dtype=bf16 (2 times their bytes)" in text
    solution, _ = solve(made, None, Limits())
    first = warnings(made, solution)[0]
    assert (first.code, first.message) == ("narrow_dtype_slower", text)


def test_a_narrower_dtype_that_is_faster_is_not_worth_a_word() -> None:
    # On L40S the same experts take 0.55 to 1 times as long in fp8.
    assert derived(profile="l40s", expert_dtype="fp8", splits=SPLIT).problem.expert.cautions is None
    assert cautions_of(derived(splits=SPLIT).problem) == {}


def test_a_narrow_cache_without_rows_says_that_its_time_is_the_wide_one() -> None:
    narrow = derived(kv_dtype="nvfp4", splits=SPLIT, **DECODE).problem
    assert "time is that of bf16" in cautions_of(narrow)["cache_rows_stand_in"]
    wide = derived(splits=SPLIT, **DECODE).problem
    assert cautions_of(wide) == {}
    assert narrow.attention.times_s == wide.attention.times_s  # type: ignore[union-attr]


def test_a_prompt_has_no_cache_to_read() -> None:
    assert cautions_of(derived(kv_dtype="nvfp4", splits=SPLIT).problem) == {}


def test_cautions_outlive_the_file_and_costs_without_any_do_not_mention_them() -> None:
    made = derived(expert_dtype="fp8", splits=SPLIT).problem
    again = validate(FindepProblem, dump_model(made))
    assert cautions_of(again) == cautions_of(made)
    assert b"cautions" not in canonical_bytes(dump_model(derived(splits=SPLIT).problem))


def test_two_parts_with_one_word_are_both_heard() -> None:
    made = derived(splits=SPLIT).problem
    said = made.model_copy(
        update={
            "expert": made.expert.model_copy(update={"cautions": {"narrow_dtype_slower": "one"}}),
            "attention": made.attention.model_copy(update={"cautions": {"narrow_dtype_slower": "two"}}),
        }
    )
    assert cautions_of(said) == {"narrow_dtype_slower": "one; two"}


@pytest.mark.parametrize("wrong", [{"other": "text"}, {"narrow_dtype_slower": ""}, "text"])
def test_other_cautions_are_refused(wrong: Any) -> None:
    from planner.errors import BadInputError

    document = dump_model(derived(splits=SPLIT).problem)
    document["expert"]["cautions"] = wrong  # type: ignore[index,call-overload]
    with pytest.raises(BadInputError):
        validate(FindepProblem, document)
