"""What if a number that a plan's costs were derived from were another: priced again, and solved again."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner import api, papers
from planner.errors import BadInputError
from planner.paper import DeriveOptions
from planner.plan import Options, Plan
from planner.pose import pose
from planner.reports.quantity import quantity
from planner.sensitivity.answers import AtValue, OverRange
from planner.sensitivity.course import course
from planner.sensitivity.movement import Movement
from planner.sensitivity.source import plain, source_of

FAST = Options(method="fast")
BATCH = [{"resolution": [512, 512], "count": 6}, {"frames": 81, "resolution": [832, 480], "count": 2, "id": "clip"}]


def step(**more: Any) -> dict[str, Any]:
    """A derived problem of Zellige: eight sequences on one node of 8 GPUs."""
    given = {
        "profile": "h200-sxm",
        "extrapolate": "roofline",
        "model": "wan2.1-1.3b",
        "cluster": {"num_ranks": 8, "gpus_per_node": 8},
        "batch": {"records": BATCH},
    }
    return {"paper": "zellige", "format_version": "1.0", "derive": given} | more


def changed(document: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The problem with other fields of ``derive``."""
    document = copy.deepcopy(document)
    document["derive"].update(fields)
    return document


@pytest.fixture(scope="module")
def made() -> Plan:
    return api.solve(step(), FAST)


@pytest.fixture(scope="module")
def decode() -> Plan:
    """FinDEP's example of decoding, whose batch is bounded by the memory of the caches."""
    document = papers.example("findep", "decode")
    document["derive"]["splits"] = [{"attention_gpus": 16, "expert_gpus": 16}]  # the plan's own, for speed
    return api.solve(document)


def over_range(plan: Plan, question: str) -> OverRange:
    answer = api.what_if(plan, question)
    assert isinstance(answer, OverRange)
    return answer


def at_value(plan: Plan, question: str) -> AtValue:
    answer = api.what_if(plan, question)
    assert isinstance(answer, AtValue)
    return answer


# --- the derived problem comes out again ----------------------------------------------------------------------------


DERIVED = [(name, example) for name in papers.names() for example in papers.examples(name)
           if "derive" in papers.example(name, example)]  # fmt: skip


@pytest.mark.parametrize(("paper", "example"), DERIVED)
def test_every_derived_example_is_rebuilt_from_its_plan(made: Plan, paper: str, example: str) -> None:
    # What was decided does not matter here, so nothing is solved.
    posed = pose(papers.example(paper, example), DeriveOptions())
    plan = dataclasses.replace(made, paper=posed.paper, problem=posed.problem, inputs=posed.inputs)
    source = source_of(plan, "derive.profile")
    assert source.other is None
    assert source.posed.inputs.problem_sha256 == posed.inputs.problem_sha256


def test_a_value_gives_what_solving_the_derived_problem_gives(made: Plan) -> None:
    answer = at_value(made, "derive.launch_s=0.25")
    assert answer.again.as_object()["reproduced"] is True
    assert (answer.old, answer.new) == (0.0, 0.25)
    assert answer.outcome.objective == api.solve(changed(step(), launch_s=0.25), FAST).certificate.objective
    # Clips are split; each rank has at least one sequence, and 0.25 s of launch for it.
    assert answer.outcome.objective >= made.certificate.objective + 0.25


def test_what_the_derivation_fills_in_follows_what_moves(made: Plan) -> None:
    # On 8 ranks configurations of degree 8 are offered, which 4 ranks refuse: those of 4 ranks are offered there.
    fewer = {"num_ranks": 4, "gpus_per_node": 4}
    answer = at_value(made, f"derive.cluster={json.dumps(fewer)}")
    assert answer.outcome.objective == api.solve(changed(step(), cluster=fewer), FAST).certificate.objective


def test_what_was_stated_beside_derive_stays(made: Plan) -> None:
    whole = [{"id": "whole", "h": 1, "q": 1, "k": 1}]
    plan = api.solve(step(configs=whole, search={"split_epsilon": 0.5}), FAST)
    source = source_of(plan, "derive.launch_s")
    assert [config["id"] for config in source.document["configs"]] == ["whole"]
    assert source.document["search"]["split_epsilon"] == 0.5
    assert "configs" not in source_of(made, "derive.launch_s").document


# --- a range --------------------------------------------------------------------------------------------------------


def test_memory_of_the_derived_form_moves_the_decision_where_a_solve_does(decode: Plan) -> None:
    answer = over_range(decode, "derive.memory.reserve_bytes=+50%")
    home, above = answer.intervals
    assert home.last.value < above.first.value <= 1.0015 * home.last.value
    for point, same in ((home.last, True), (above.first, False)):
        document = papers.example("findep", "decode")
        document["derive"] |= {
            "splits": [{"attention_gpus": 16, "expert_gpus": 16}],
            "memory": {"reserve_bytes": point.value},
        }
        solved = api.solve(document)
        assert (solved.solution.m_a == decode.solution.m_a) is same
        assert solved.certificate.objective == point.outcome.objective


def test_tokens_step_through_whole_tokens(decode: Plan) -> None:
    answer = over_range(decode, "derive.context_tokens=±2")
    assert [point.value for point in answer.points] == [4094, 4095, 4096, 4097, 4098]
    objectives = [point.outcome.objective or 0.0 for point in answer.points]
    assert objectives == sorted(objectives, reverse=True)  # a longer cache is never read faster


def test_a_range_ends_where_there_is_no_price() -> None:
    # Two nodes need a link between them, which nobody stated. With 4 GPUs a node, 8 ranks are the first on two.
    plan = api.solve(changed(step(), cluster={"num_ranks": 2, "gpus_per_node": 4}), FAST)
    answer = over_range(plan, "derive.cluster.num_ranks=±6")
    assert [point.value for point in answer.points] == [1, 2, 3, 4]
    assert [(stop.value, stop.code) for stop in answer.course.stops][1:] == [(8, "missing_field")]


def test_past_the_first_value_without_a_price_nothing_is_tried() -> None:
    asked: list[float] = []

    def unposed(value: float) -> BadInputError | None:
        asked.append(value)
        return BadInputError("not measured", code="outside_measured_range") if value > 5000 else None

    movement = Movement("a", "+", 100_000.0, False, down=False, up=True)
    for start in (1000, 1000.0):
        asked.clear()
        way = course(movement, start, lambda _value: None, unposed)
        assert 4900 < way.values[-1] <= 5000
        assert [stop.code for stop in way.stops] == ["outside_measured_range"]
        assert all(isinstance(value, type(start)) for value in way.values)
        assert len(asked) <= 20
    assert course(movement, 1000, lambda _value: None, unposed).values[-1] == 5000


def test_the_last_of_multiples_is_looked_for() -> None:
    def refusal(value: float) -> BadInputError | None:
        return None if value % 8 == 0 else BadInputError("expected full nodes", code="out_of_range")

    # 64 values, 313 apart: the last looked at is 20008, and then what lies below it.
    movement = Movement("a", "+20003", 20_003.0, False, down=False, up=True)
    way = course(movement, 8, refusal, refusal)
    assert (way.values[-1], way.stops) == (20_008, ())
    assert all(value % 8 == 0 for value in way.values)


# --- files, and what changed since ----------------------------------------------------------------------------------


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A plan file whose batch is a file beside it."""
    lines = [json.dumps(record) for record in BATCH]
    (tmp_path / "batch.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "problem.json").write_text(json.dumps(changed(step(), batch={"jsonl": "batch.jsonl"})), "utf-8")
    api.dump(api.solve(tmp_path / "problem.json", FAST), tmp_path / "plan.json")
    return tmp_path


QUESTION = "derive.launch_s=0.25"


def test_files_are_read_beside_the_plan_or_from_another_folder(beside: Path, made: Plan) -> None:
    expected = at_value(made, QUESTION).outcome.objective
    assert at_value(api.load(beside / "plan.json"), QUESTION).outcome.objective == expected
    (beside / "data").mkdir()
    (beside / "batch.jsonl").rename(beside / "data" / "batch.jsonl")
    assert at_value(api.load(beside / "plan.json", beside / "data"), QUESTION).outcome.objective == expected


def test_a_missing_file_is_bad_input_and_the_explicit_costs_can_still_be_asked(
    beside: Path, plan: Callable[..., Any]
) -> None:
    (beside / "batch.jsonl").unlink()
    ran = plan("show", str(beside / "plan.json"), "--what-if", QUESTION, "--error-format", "json")
    assert (ran.code, ran.out, ran.error["where"]) == (2, "", "derive.batch.jsonl")
    assert "batch.jsonl" in ran.error["message"]
    assert "--data DIR" in ran.error["message"]
    assert plan("show", str(beside / "plan.json"), "--what-if", "cluster.memory_cap_bytes=1e12").code == 0


def test_a_file_that_changed_since_is_named(beside: Path, plan: Callable[..., Any]) -> None:
    (beside / "batch.jsonl").write_text(json.dumps(BATCH[0]), encoding="utf-8")
    said = " ".join(plan("show", str(beside / "plan.json"), "--what-if", QUESTION).out.split())
    assert "priced again the plan's problem is another: batch.jsonl changed since" in said


def test_a_cost_table_that_changed_since_is_named(made: Plan) -> None:
    derive = {**made.inputs.derive, "launch_s": 0.5}
    other = dataclasses.replace(made, inputs=made.inputs.model_copy(update={"derive": derive}))
    assert at_value(other, QUESTION).again.other == "the plan states other costs"
    inputs = made.inputs.model_copy(update={"derive": derive, "profile_sha256": "0" * 64})
    answer = at_value(dataclasses.replace(made, inputs=inputs), QUESTION)
    assert answer.again.other == "the cost table h200-sxm changed since"
    assert answer.as_object()["again"]["other_problem"] == answer.again.other


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "code", "says"),
    [
        ("derive.lunch_s=±5%", "unknown_field", 'did you mean "launch_s"?'),
        ("derive.lunch_s=5", "unknown_field", 'did you mean "launch_s"?'),
        ("derive.memory.capacity_bytes=±5%", "wrong_type", "not set"),
        ("derive.checkpointing=±5%", "wrong_type", "got a string"),
        ("derive.resolved.memory.reserve_bytes=5", "unknown_field", "resolved"),
        ("derive.extrapolate=refuse", "outside_measured_range", "was not measured"),
        ("derive.dtype=fp8", "out_of_range", "bf16"),
        ("derive=3", "wrong_type", "got 3"),
    ],
)
def test_a_question_of_the_derived_form_without_an_answer_is_bad_input(
    made: Plan, question: str, code: str, says: str
) -> None:
    with pytest.raises(BadInputError, match=says) as caught:
        api.what_if(made, question)
    assert caught.value.code == code
    assert str(caught.value.where).startswith("derive")


def test_that_nothing_fits_is_an_answer(made: Plan) -> None:
    answer = at_value(made, "derive.memory.reserve_bytes=2e11")  # an H200 has 151.4e9
    assert answer.outcome.error is not None
    assert (answer.outcome.error.kind, answer.outcome.error.where) == ("infeasible", "derive.memory.capacity_bytes")


# --- how values are written -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("groups.x.options.0.time_s", 4.5, "4.5 s"),
        ("splits.0.expert.times_s.3", 1.25e-5, "12.5 us"),
        ("derive.launch_s", 0.0, "0 s"),
        ("derive.launch_s", 2e-12, "2e-12 s"),
        ("derive.memory.reserve_bytes", 4e9, "4 GB"),
        ("memory.attention_fixed_bytes.weights", 2500.0, "2.5 kB"),
        ("derive.cluster.inter_node.bandwidth_bytes_per_s", 50e9, "50 GB/s"),
        ("splits.0.a2e.beta_s_per_token", 1.5e-7, "150 ns/token"),
        ("derive.context_tokens", 4096, "4096"),
        ("objective.tokens_per_s", 1.5, "1.5"),
        ("search.max_bytes", True, "true"),
        ("shared_expert", {"alpha_s": 1.0, "sources": None}, '{"alpha_s": 1.0, "sources": null}'),
        ("derive.dtype", "bf16", "bf16"),
    ],
)
def test_a_value_has_the_unit_that_its_field_is_named_for(path: str, value: object, text: str) -> None:
    assert quantity(path, value) == text


def test_the_command_writes_values_as_json_with_units_and_new_warnings(
    decode: Plan, plan: Callable[..., Any], tmp_path: Path
) -> None:
    api.dump(decode, tmp_path / "plan.json")

    def said(question: str) -> str:
        return " ".join(plan("show", str(tmp_path / "plan.json"), "--what-if", question).out.split())

    assert "with memory = null ({" in said("memory=null")
    bandwidth = said("derive.cluster.inter_node.bandwidth_bytes_per_s=25e9")
    assert "bandwidth_bytes_per_s = 25 GB/s (50 GB/s in the plan)" in bandwidth
    assert "warning: narrow_dtype_slower: experts are priced" in said("derive.dtype=fp8")


def test_what_both_forms_state_and_the_derivation_goes_by_is_derived_again() -> None:
    # Under TransformerEngine's rules two of eight operators are left out: another launcher is another problem.
    document = papers.example("compass", "transformer_engine")
    moved = source_of(api.solve(document), "launcher_rules")
    again = moved.pose({**plain(moved.document), "launcher_rules": "none"})
    assert len(again.problem.operators) == 8
    fresh = pose({**document, "launcher_rules": "none"}, DeriveOptions())
    assert again.inputs.problem_sha256 == fresh.inputs.problem_sha256
