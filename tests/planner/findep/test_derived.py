"""The derived form of FinDEP from end to end: what it offers, what it refuses, and that its costs can be used."""

from __future__ import annotations

import hashlib
import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from findep_derived import DOCUMENT, derived, document, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.derivation.lines import line_through
from planner.documents import canonical_bytes
from planner.errors import InfeasibleError
from planner.paper import DeriveOptions
from planner.papers.findep.amounts import SampleCost, SampleTable, TokenCost, TokenTable
from planner.papers.findep.cost import derive
from planner.papers.findep.derived import FindepDerivedProblem
from planner.papers.findep.engines import solve
from planner.papers.findep.problem import FindepProblem
from planner.validation import validate
from profiles.library import load, names
from solvers.report import Limits

EXAMPLES = Path(__file__).parents[3] / "planner" / "papers" / "findep" / "examples"
MODELS = ["deepseek-v2", "deepseek-v3", "gpt-oss-120b", "qwen3-235b-a22b", "qwen3-30b-a3b"]
DECODE: dict[str, Any] = {"phase": "decode", "prompt_tokens": None, "context_tokens": 4096}
LINK = {"bandwidth_bytes_per_s": 5e10, "latency_s": 5e-6}
FOUR = [{"attention_gpus": 4, "expert_gpus": 4}]
EIGHT = [{"attention_gpus": 8, "expert_gpus": 8}]


def tables_of(problem: FindepProblem) -> list[tuple[float, ...]]:
    costs = [problem.attention, problem.shared_expert, problem.expert]
    costs += [cost for split in problem.splits for cost in (split.a2e, split.e2a, split.expert)]
    return [cost.times_s for cost in costs if isinstance(cost, SampleTable | TokenTable)]


@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize("profile", sorted(names()))
@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_priced_on_every_built_in_profile(model: str, profile: str, phase: str) -> None:
    cluster = {"num_ranks": 16, "gpus_per_node": 8, "inter_node": LINK}
    lengths = DECODE if phase == "decode" else {}
    made = derived(model=model, profile=profile, cluster=cluster, splits=FOUR + EIGHT, **lengths)
    tables = tables_of(made.problem)
    assert len(tables) >= 4
    for times in tables:
        assert times[0] > 0
        assert all(low <= high for low, high in pairwise(times))
    assert made.problem.num_layers == {"deepseek-v2": 59, "deepseek-v3": 58, "gpt-oss-120b": 36,
                                       "qwen3-235b-a22b": 94, "qwen3-30b-a3b": 48}[model]  # fmt: skip


@pytest.mark.parametrize("name", ["derived", "decode", "deepseek"])
def test_the_examples_have_a_plan(name: str) -> None:
    given = json.loads((EXAMPLES / f"{name}.json").read_bytes())
    made = derive(validate(FindepDerivedProblem, given), DeriveOptions())
    solution, _ = solve(made.problem, None, Limits())
    assert solution.objective > 0
    limit = made.problem.makespan_limit_s
    assert limit is None or solution.makespan_s <= limit


def test_the_explicit_form_reads_back_as_itself() -> None:
    first, again = derived().problem, derived().problem
    written = canonical_bytes(first.model_dump(exclude_none=True))
    assert written == canonical_bytes(again.model_dump(exclude_none=True))
    assert validate(FindepProblem, json.loads(written)).sorted() == first


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["real", "ceil"]),
    st.integers(1, 1500),
    st.integers(1, 64),
    st.integers(1, 300),
    st.sampled_from(MODELS),
)
def test_tables_cover_whatever_box_is_searched(rounding: str, m_a: int, r2: int, prompt: int, model: str) -> None:
    search = {"max_m_a": m_a, "max_r1": 1, "max_r2": r2, "token_rounding": rounding}
    made = derived(search=search, prompt_tokens=prompt, model=model)  # the explicit form refuses tables that end
    assert made.problem.search.max_m_a == m_a


def test_prices_between_points_are_those_of_the_tables() -> None:
    """Linear between points that lie a factor of 2^(1/4) apart; checked against points four times as dense."""
    expert = derived(splits=FOUR, search={"max_m_a": 16, "max_r2": 8}).problem.expert
    assert isinstance(expert, TokenTable)
    between = np.sqrt(np.array(expert.tokens[1:]) * np.array(expert.tokens[:-1]))
    rows = load("h200-sxm").moe_gemm(between * 16, hidden=4096, ffn=1536, experts=128, top_k=8, extrapolate="roofline")
    launch = 42.26e-6
    exact = launch / 32 + (rows.seconds - launch) / 128
    assert np.interp(between, expert.tokens, expert.times_s) == pytest.approx(exact, rel=0.05)


# --- splits -----------------------------------------------------------------------------------------------------


def test_every_way_to_cut_the_ranks_is_offered() -> None:
    pools = [(split.attention_gpus, split.expert_gpus) for split in derived().problem.splits]
    assert pools == [(ag, 8 - ag) for ag in range(1, 8)]


def test_no_expert_gpu_goes_without_an_expert() -> None:
    cluster = {"num_ranks": 16, "gpus_per_node": 8, "inter_node": LINK}
    pools = derived(model="mixtral-8x7b", cluster=cluster).problem.splits
    assert [(split.attention_gpus, split.expert_gpus) for split in pools] == [(ag, 16 - ag) for ag in range(8, 16)]


def test_listed_splits_may_leave_ranks_idle_and_come_out_sorted() -> None:
    listed = [{"attention_gpus": 4, "expert_gpus": 2}, {"attention_gpus": 2, "expert_gpus": 4}]
    pools = derived(splits=listed).problem.splits
    assert [(split.attention_gpus, split.expert_gpus) for split in pools] == [(2, 4), (4, 2)]


def test_a_single_split_is_the_problems_own() -> None:
    problem = derived(splits=FOUR).problem
    assert problem.splits[0].expert is None
    assert problem.splits[0].attention_bytes_per_sample is None


def test_a_split_inside_a_node_needs_no_link() -> None:
    wide = {"num_ranks": 16, "gpus_per_node": 8}
    assert derived(cluster=wide, splits=FOUR).problem.splits[0].gpus == 8
    error = refused(cluster=wide)
    assert (error.code, error.where) == ("missing_field", "derive.cluster.inter_node")
    error = refused(cluster={"preset": "dgx-h200", "nodes": 2}, profile=None)
    assert (error.code, error.where) == ("missing_field", "derive.cluster.tiers.fabric.latency_s")


# --- refusals ---------------------------------------------------------------------------------------------------

SMALL = {"hidden": 512, "num_layers": 2, "num_heads": 8, "vocab": 100}
EXPERTS = {"num_experts": 8, "top_k": 2, "ffn": 512}
NARROW = {"kv_lora": 256, "nope": 128, "rope": 64, "v": 128}


@pytest.mark.parametrize(
    ("changes", "code", "where", "says"),
    [
        ({"model": "llama-3.1-8b"}, "out_of_range", "derive.model", "has no experts"),
        ({"model": "deepseek-v3.2"}, "out_of_range", "derive.model", "sparse attention"),
        ({"model": "deepseek-v4"}, "unknown_model", "derive.model", "Known: deepseek-v2"),
        ({"model": {**SMALL, "moe": EXPERTS, "mla": NARROW}}, "out_of_range", "derive.model", "kv_lora 512"),
        ({"model": {**SMALL, "moe": EXPERTS, "gated": False}}, "out_of_range", "derive.model", "not gated"),
        ({"phase": "decode"}, "missing_field", "derive.context_tokens", "phase decode needs it"),
        ({"context_tokens": 9}, "out_of_range", "derive.context_tokens", "the other phase"),
        ({"splits": []}, "out_of_range", "derive.splits", "at least one split"),
        ({"splits": FOUR * 2}, "duplicate_id", "derive.splits", "(4, 4) occurs twice"),
        ({"splits": EIGHT}, "out_of_range", "derive.splits.0", "num_ranks = 8, got 16"),
        ({"cluster": {"num_ranks": 1, "gpus_per_node": 8}}, "out_of_range", "derive.cluster", "at least two ranks"),
        ({"cluster": {"num_ranks": 16, "gpus_per_node": 16}}, "outside_measured_range", "derive.cluster", "2..8"),
        ({"workload": "even"}, "outside_measured_range", "derive.workload", "moe_gemm/bf16/balanced"),
        ({"dtype": "fp8", "profile": "a100-sxm"}, "outside_measured_range", "derive.dtype", "no gemm/fp8 rows"),
        ({"search": {"max_m_a": 65536, "max_r2": 65536}}, "too_large", "search", "20,000,000"),
        ({"profile": "h300"}, "unknown_profile", "derive.profile", "Known: a100-sxm"),
    ],
)
def test_a_problem_that_cannot_be_priced_is_refused_with_its_place(
    changes: dict[str, Any], code: str, where: str, says: str
) -> None:
    error = refused(**changes)
    assert (error.code, error.where) == (code, where)
    assert says in error.message


def test_without_extrapolation_only_rows_count_and_what_lies_outside_is_named() -> None:
    error = refused(extrapolate="refuse", prompt_tokens=16384)
    assert (error.code, error.where) == ("outside_measured_range", "derive.extrapolate")
    assert "m 49152 is outside the measured 1..32768" in error.message
    latent = refused(extrapolate="refuse", model="deepseek-v2")
    assert "no mla_prefill/bf16 rows" in latent.message
    small = derived(extrapolate="refuse", prompt_tokens=512, model="qwen3-30b-a3b", splits=FOUR).problem
    assert small.attention.sources is not None
    assert small.attention.sources.modelled == 0.0


def test_a_cache_that_was_not_measured_is_priced_as_a_wider_one() -> None:
    wide, narrow = (derived(**DECODE, kv_dtype=kind, splits=FOUR).problem for kind in ("bf16", "fp8"))
    assert tables_of(narrow) == tables_of(wide)
    assert narrow.attention.sources is not None
    assert wide.attention.sources is not None
    assert narrow.attention.sources.modelled > wide.attention.sources.modelled
    error = refused(**DECODE, kv_dtype="fp8", extrapolate="refuse")
    assert "no decode_attention/bf16_kv_fp8 rows" in error.message


# --- what a plan keeps ------------------------------------------------------------------------------------------


def test_the_line_of_every_cost_is_told_with_how_far_it_is_off() -> None:
    made: Any = derived(splits=FOUR)
    fits = made.derive["resolved"]["fits"]
    table = made.problem.attention
    line = fits["attention"]
    off = [
        abs((line["alpha_s"] + line["beta_s_per_sample"] * x) / t - 1)
        for x, t in zip(table.samples, table.times_s, strict=True)
    ]
    assert line["mape"] == pytest.approx(sum(off) / len(off), rel=1e-3)
    assert line["worst"] == pytest.approx(max(off), rel=1e-3)
    assert fits["shared_expert"] is None
    assert set(fits["splits"][0]) == {"attention_gpus", "expert_gpus", "expert", "a2e", "e2a"}


def test_a_problem_may_be_posed_in_the_papers_lines() -> None:
    made: Any = derived(fit="line", model="deepseek-v2")
    line = made.derive["resolved"]["fits"]["attention"]
    problem = made.problem
    assert isinstance(problem.attention, SampleCost)
    assert problem.attention.alpha_s == line["alpha_s"]
    assert isinstance(problem.shared_expert, SampleCost)
    assert all(isinstance(cost, TokenCost) for split in problem.splits for cost in (split.a2e, split.expert))
    assert tables_of(problem) == []


@given(
    st.floats(0, 1e3),
    st.floats(0, 1e3),
    st.lists(st.integers(1, 10**6), min_size=3, max_size=40, unique=True),
)
def test_a_line_is_found_again_and_never_goes_below_zero(alpha: float, beta: float, amounts: list[int]) -> None:
    x = np.sort(np.array(amounts, dtype=np.float64))
    seconds = alpha + beta * x
    if seconds.min() <= 1e-3:
        return
    line = line_through(x, seconds)
    assert line.alpha >= 0
    assert line.beta >= 0
    assert line.worst < 1e-4


def test_a_line_through_times_that_fall_per_unit_starts_at_zero() -> None:
    x = np.array([1.0, 10.0, 100.0])
    line = line_through(x, x**1.5)
    assert line.alpha == 0.0
    assert line.beta > 0
    assert 0 < line.mape <= line.worst


def test_dense_layers_and_the_head_are_told_and_not_planned() -> None:
    made: Any = derived(model="deepseek-v3", splits=FOUR)
    beside = made.derive["resolved"]["outside_the_makespan"]
    assert beside["dense_layers_s"]["samples"] == [1.0, 2.0, 4.0]
    # Three layers with a network of 18,432 take longer than three layers of attention alone.
    assert beside["dense_layers_s"]["times_s"][0] > 3 * made.problem.attention.times_s[0]
    assert derived(splits=FOUR).derive["resolved"]["outside_the_makespan"]["dense_layers_s"] is None  # type: ignore[index]


def test_shares_say_where_every_cost_comes_from() -> None:
    problem = derived(cluster={"num_ranks": 16, "gpus_per_node": 8, "inter_node": LINK}, splits=FOUR + EIGHT).problem
    costs = [problem.attention, *(cost for split in problem.splits for cost in (split.a2e, split.expert))]
    for cost in costs:
        assert cost is not None
        shares = cost.sources
        assert shares is not None
        total = shares.measured + shares.interpolated + shares.modelled + shares.stated
        assert total == pytest.approx(1.0, abs=1e-9)
    assert problem.splits[1].a2e.sources is not None
    assert problem.splits[1].a2e.sources.stated == 1.0


def test_the_error_of_a_table_is_told_where_it_is_known() -> None:
    rows, formula, unknown = (derived(model=name).cost_error for name in MODELS[3:1:-1] + MODELS[:1])
    assert rows is not None
    assert rows["median"] < 0.05
    assert formula is not None  # experts of gpt-oss-120b have no rows on H200: the formula's own error counts
    assert formula["median"] > rows["median"]
    assert unknown is None  # nothing of latent attention was measured on it


def test_a_limit_of_memory_is_relaxed_on_the_field_that_the_file_has() -> None:
    made = derived(memory={"capacity_bytes": 1e10}, splits=FOUR)
    with pytest.raises(InfeasibleError) as caught:
        solve(made.problem, None, Limits())
    assert caught.value.relaxation is not None
    name, more = made.relaxable[caught.value.relaxation.field]
    assert (name, more) == ("derive.memory.capacity_bytes", 0.0)
    needed = math.ceil(caught.value.relaxation.value)
    assert solve(derived(memory={"capacity_bytes": needed}, splits=FOUR).problem, None, Limits())


def test_without_memory_nothing_is_limited() -> None:
    made = derived(memory=None)
    assert made.problem.memory is None
    assert made.relaxable == {}
    assert all(split.attention_bytes_per_sample is None for split in made.problem.splits)


def test_the_command_line_overrides_profile_and_extrapolation() -> None:
    assert derived(DeriveOptions(profile="h100-sxm")).profile == "h100-sxm"
    with pytest.raises(Exception, match="outside the measured"):
        derived(DeriveOptions(extrapolate="refuse"), prompt_tokens=16384)


def test_a_named_cluster_brings_its_profile_and_its_memory() -> None:
    made: Any = derived(profile=None, cluster="dgx-h100")
    assert made.profile == "h100-sxm"
    assert made.derive["resolved"]["memory"]["capacity_bytes"] == load("h100-sxm").device.memory_bytes
    assert made.derive["resolved"]["cluster"] == {"num_ranks": 8, "gpus_per_node": 8}


def test_a_model_may_be_sizes_or_a_file_which_a_plan_knows_by_name_and_digest(tmp_path: Path) -> None:
    sizes = {**SMALL, "moe": EXPERTS, "name": "small"}
    inline = derived(model=sizes).problem
    text = json.dumps(sizes)
    (tmp_path / "mine.json").write_text(text)
    made: Any = derived(DeriveOptions(base_folder=str(tmp_path)), model="./mine.json")
    assert made.problem == inline
    assert made.derive["model"] == "mine.json"
    assert made.arrays == {"mine.json": hashlib.sha256(text.encode()).hexdigest()}
    assert str(tmp_path) not in json.dumps(made.derive)


def test_fields_that_are_no_costs_are_kept() -> None:
    kept = {
        "objective": "tokens_per_s_per_gpu",
        "makespan_limit_s": 3.0,
        "notes": {"a": 1},
        "launcher_rules": "vllm_afd",
    }
    problem = derived(**kept).problem
    assert {name: getattr(problem, name) for name in kept} == kept
    assert problem.search.max_m_a == DOCUMENT["search"]["max_m_a"]
    assert problem.tokens_per_sample == 2048
    assert derived(**DECODE).problem.tokens_per_sample == 1
    assert document(**kept)["objective"] == "tokens_per_s_per_gpu"
