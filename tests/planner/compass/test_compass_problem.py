"""What a problem file may say, what is refused and where, and when nothing can be done (page, sections 6 and 9)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from compass_cases import G1, G7, Document, named, operator, problem, solved

from planner.envelope import dump_model
from planner.errors import BadInputError, InfeasibleError, LimitError
from planner.fields import set_field
from planner.papers.compass.problem import STRATEGIES, CompassProblem
from planner.validation import validate

TE = {"launcher_rules": "transformer_engine"}
PROJ = named("proj_fprop", "gemm_rs", 3.0, 4, 2.0)
FC2 = named("fc2_fprop", "gemm_rs", 3.0, 4, 2.0)


def refused(*operators: Document, **changes: Any) -> BadInputError:
    """The fault of a document."""
    with pytest.raises(BadInputError) as caught:
        problem(*operators, **changes)
    return caught.value


@pytest.mark.parametrize(
    ("changes", "code", "where", "said"),
    [
        ({"split": 1}, "unknown_field", "operators.x.split", "split"),
        ({"op": "gemm_ag"}, "out_of_range", "operators.x.op", "ag_gemm"),
        ({"count": 0}, "out_of_range", "operators.x.count", "1"),
        ({"count": True}, "wrong_type", "operators.x.count", "integer"),
        ({"count": 1.5}, "wrong_type", "operators.x.count", "integer"),
        ({"tp_size": 1}, "out_of_range", "operators.x.tp_size", "2"),
        ({"split_extent": 0}, "out_of_range", "operators.x.split_extent", "1"),
        ({"split_multiple": 0}, "out_of_range", "operators.x.split_multiple", "1"),
        ({"max_degree": 0}, "out_of_range", "operators.x.max_degree", "1"),
        ({"comm": {"startup_s": -1.0, "payload_s": 1.0}}, "out_of_range", "operators.x.comm.startup_s", "0"),
        ({"comm": {"startup_s": float("nan"), "payload_s": 1.0}}, "not_finite", "operators.x.comm.startup_s", "finite"),
        ({"comm": {"startup_s": True, "payload_s": 1.0}}, "wrong_type", "operators.x.comm.startup_s", "number"),
        ({"comm": {"startup_s": 1.0}}, "missing_field", "operators.x.comm.payload_s", "payload_s"),
        ({"comm": None}, "missing_field", "operators.x.comm", "go together"),
        ({"gemm": None}, "missing_field", "operators.x.gemm", "go together"),
        ({"comm": None, "gemm": None}, "missing_field", "operators.x", "sequential_time_s"),
        ({"contention": {"comm": 0.9}}, "out_of_range", "operators.x.contention.comm", "1"),
        ({"sequential_time_s": 0.0}, "out_of_range", "operators.x.sequential_time_s", "0"),
        ({"fused": [{"id": "a", "time_s": 0.0}]}, "out_of_range", "operators.x.fused.a.time_s", "0"),
        ({"fused": [{"id": "a", "time_s": 1.0}] * 2}, "duplicate_id", "operators.x.fused", "twice"),
        ({"inter_decom_table": []}, "out_of_range", "operators.x.inter_decom_table", "1 to"),
        (
            {"inter_decom_table": [{"degree": 3, "time_s": 1.0}]},
            "illegal_degree",
            "operators.x.inter_decom_table.0.degree",
            "= 64, got 3",
        ),
        (
            {"inter_decom_table": [{"degree": 1, "time_s": 1.0}]},
            "out_of_range",
            "operators.x.inter_decom_table.0.degree",
            "2",
        ),
        (
            {"inter_decom_table": [{"degree": 2, "time_s": 1.0}], "split_multiple": 3},
            "illegal_degree",
            "operators.x.inter_decom_table.0.degree",
            "split_multiple 3 does not divide",
        ),
        (
            {"inter_decom_table": [{"degree": 64, "time_s": 1.0}], "max_degree": 32},
            "illegal_degree",
            "operators.x.inter_decom_table.0.degree",
            "max_degree 32",
        ),
        (
            {"inter_decom_table": [{"degree": 2, "time_s": 1.0}] * 2},
            "duplicate_id",
            "operators.x.inter_decom_table",
            "2",
        ),
        ({"allowed_strategies": []}, "out_of_range", "operators.x.allowed_strategies", "at least one"),
        ({"allowed_strategies": ["fused"]}, "out_of_range", "operators.x.allowed_strategies.0", "intra_fusion"),
        ({"allowed_strategies": ["sequential"] * 2}, "duplicate_id", "operators.x.allowed_strategies", "twice"),
        ({"runs": {"path": ""}}, "out_of_range", "operators.x.runs.path", "1"),
        (
            {"stages": {"path": "a", "comm_bytes": 1.0, "gemm_rows": 1.0}},
            "out_of_range",
            "operators.x.stages",
            "delete comm",
        ),
        (
            {"runs": {"path": "a"}, "inter_decom_table": [{"degree": 2, "time_s": 1.0}]},
            "out_of_range",
            "operators.x.runs",
            "delete inter_decom_table (--set operators.x.inter_decom_table=null)",
        ),
    ],
)
def test_a_fault_of_an_operator_is_refused_at_its_place(changes: Document, code: str, where: str, said: str) -> None:
    error = refused({**G1, **changes})
    assert (error.code, error.where) == (code, where)
    assert said in error.message


def test_stages_that_take_no_time_at_all_are_refused() -> None:
    error = refused(operator(0.0, 0.0, 0.0, 0.0, 64))
    assert (error.code, error.where) == ("out_of_range", "operators.x")
    assert "got startup_s and payload_s of 0 for both" in error.message
    # shorter than any clock: a total could lose all its digits
    assert "got 4e-31 in all" in refused(operator(1e-31, 1e-31, 1e-31, 1e-31, 64)).message


def test_faults_of_the_whole_problem_are_refused() -> None:
    assert (refused().code, refused().where) == ("out_of_range", "operators")
    assert refused(G1, G1).code == "duplicate_id"
    assert refused(G1, launcher_rules="megatron").code == "out_of_range"
    assert refused(G1, speed=1).code == "unknown_field"
    many = refused(*({**PROJ, "id": str(i)} for i in range(20_001)))
    assert (many.code, many.where) == ("too_large", "operators")


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({"gemm_name": None}, "missing_field", "operators.proj_fprop.gemm_name"),
        ({"tp_size": None}, "missing_field", "operators.proj_fprop.tp_size"),
        ({"gemm_name": "qkv_fprop"}, "out_of_range", "operators.proj_fprop.gemm_name"),
        ({"gemm_name": "out_proj"}, "out_of_range", "operators.proj_fprop.gemm_name"),
        ({"op": "gemm_ar"}, "out_of_range", "operators.proj_fprop.op"),
        ({"gemm_name": "fc2_fprop"}, "duplicate_id", "operators"),
    ],
)
def test_transformer_engine_needs_known_names_and_ranks(changes: Document, code: str, where: str) -> None:
    given = {name: value for name, value in (PROJ | changes).items() if value is not None}
    error = refused(given, FC2, **TE)
    assert (error.code, error.where) == (code, where)
    assert problem(given, {**FC2, "gemm_name": "other"}).operators, "without its rules names are free"


def test_what_stays_sequential_needs_no_name_for_the_launcher() -> None:
    given = problem({**G1, "op": "gemm_ar", "allowed_strategies": ["sequential"]}, PROJ, FC2, **TE)
    assert [choice.strategy for choice in solved(given).choices] == ["inter_decom", "inter_decom", "sequential"]


def test_the_canonical_form_does_not_depend_on_any_order() -> None:
    fused = [{"id": name, "time_s": 1.0} for name in "ab"]
    plain = problem({**G1, "id": "a", "fused": fused}, {**G7, "id": "b", "allowed_strategies": list(STRATEGIES)})
    table = G7["inter_decom_table"][::-1]
    mixed = problem(
        {**G7, "id": "b", "inter_decom_table": table, "allowed_strategies": list(STRATEGIES[::-1])},
        {**G1, "id": "a", "fused": fused[::-1]},
    )
    assert dump_model(plain) == dump_model(mixed)
    assert validate(CompassProblem, json.loads(json.dumps(dump_model(plain)))) == plain


def test_same_input_same_plan() -> None:
    given = problem(G1, {**G7, "id": "y"})
    assert dump_model(solved(given)) == dump_model(solved(given))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"split_extent": 4096, "split_multiple": 63}, "split_multiple 63 does not divide split_extent 4096"),
        ({"split_extent": 4093, "split_multiple": 1, "max_degree": 64}, "4093 has no divisor from 2 to max_degree 64"),
        ({"max_degree": 1}, "no divisor from 2 to max_degree 1"),
        ({"allowed_strategies": ["intra_fusion"]}, "no fused kernel is listed"),
        ({"comm": None, "gemm": None, "sequential_time_s": 1.0}, "comm and gemm are not given"),
    ],
)
def test_no_strategy_says_why_and_what_helps(changes: Document, said: str) -> None:
    document = {**G1, "allowed_strategies": ["inter_decom"]} | changes
    given = problem({name: value for name, value in document.items() if value is not None})
    for method in ("scan", "closed_form", "exact"):
        with pytest.raises(InfeasibleError) as caught:
            solved(given, method)
        error = caught.value
        assert error.code == "no_strategy"
        assert said in error.message
        assert '"x"' in error.message
    assert error.as_object()["smallest_relaxation"] == {
        "field": "operators.x.allowed_strategies",
        "value": "sequential",
        "proven": True,
    }
    assert "--set operators.x.allowed_strategies='sequential'" in error.lines()[-1]
    relaxed = json.loads(json.dumps(dump_model(given)))
    set_field(relaxed, "operators.x.allowed_strategies", "sequential")
    assert solved(validate(CompassProblem, relaxed)).choices[0].strategy == "sequential"


def test_of_several_operators_without_a_strategy_the_first_is_named_and_more_may_be_needed() -> None:
    stuck = {**G1, "allowed_strategies": ["intra_fusion"]}
    with pytest.raises(InfeasibleError) as caught:
        solved(problem(stuck, {**stuck, "id": "y"}))
    assert caught.value.where == "operators.x.allowed_strategies"
    assert "more may be" in caught.value.lines()[-1]


def test_launcher_rules_may_leave_nothing() -> None:
    ring = {**named("qkv_fprop", "ag_gemm", 3.0, 2, 2.0), "allowed_strategies": ["inter_decom", "intra_fusion"]}
    with pytest.raises(InfeasibleError, match="no degree of inter_decom_table is one that"):
        solved(problem(ring, **TE))
    fused = {**ring, "inter_decom_table": None, "max_degree": 2, "fused": [{"id": "ring", "time_s": 1.0}]}
    fused = {name: value for name, value in fused.items() if value is not None}
    with pytest.raises(InfeasibleError, match=r"tp_size or tp_size / 2 chunks.*has no fused kernels"):
        solved(problem(fused, **TE))


def test_a_switch_may_leave_nothing_and_names_both_sides() -> None:
    insists = {**PROJ, "allowed_strategies": ["inter_decom"]}
    cannot = {**FC2, "allowed_strategies": ["sequential", "intra_fusion"]}
    with pytest.raises(InfeasibleError) as caught:
        solved(problem(insists, cannot, **TE))
    error = caught.value
    assert error.where == "operators.proj_fprop.allowed_strategies"
    assert '"proj_fprop"' in error.message
    assert '"fc2_fprop"' in error.message
    assert "enough, and the least" in error.lines()[-1]
    relaxed = problem({**insists, "allowed_strategies": ["sequential"]}, cannot, **TE)
    assert [choice.strategy for choice in solved(relaxed).choices] == ["sequential", "sequential"]


def test_files_that_were_not_read_are_asked_for() -> None:
    with pytest.raises(BadInputError) as caught:
        solved(problem({**G1, "runs": {"path": "runs.csv"}}))
    assert caught.value.where == "operators.x.runs.path"


def test_the_reference_stops_before_degrees_without_number() -> None:
    given = problem({**G1, "split_extent": 2**32, "split_multiple": 1})
    assert solved(given).choices[0].degree == 8
    with pytest.raises(LimitError, match="one by one"):
        solved(given, "exact")


def test_a_problem_with_too_many_candidates_is_refused_at_the_door() -> None:
    """Up to 1920 divisors each for 3000 operators are 5.8 million."""
    large = {**PROJ, "split_extent": 2**32, "max_degree": 2**32}
    error = refused(*({**large, "id": str(i)} for i in range(3000)))
    assert (error.code, error.where) == ("too_large", "operators")
    fused = [{"id": str(i), "time_s": 1.0} for i in range(65)]
    assert refused({**G1, "fused": fused}).code == "too_large"


AG = named("fc1_fprop", "ag_gemm", 3.0, 8, 2.0)
DGRAD = named("fc2_dgrad", "ag_gemm", 3.0, 8, 2.0)
UNCUT: Document = {"split_extent": 61, "max_degree": 8, "inter_decom_table": None}


def lacking(document: Document, **changes: Any) -> Document:
    """The operator without a degree."""
    return {name: value for name, value in (document | UNCUT | changes).items() if value is not None}


ONLY: Document = {"allowed_strategies": ["inter_decom"]}
RELAXED: dict[str, tuple[list[Document], str, bool]] = {
    "one operator of one switch": ([PROJ | ONLY, lacking(FC2)], "operators.proj_fprop.allowed_strategies", True),
    "both of one switch": ([lacking(PROJ, **ONLY), FC2 | ONLY], "operators.proj_fprop.allowed_strategies", False),
    "two switches": (
        [PROJ | ONLY, lacking(FC2), AG | ONLY, lacking(DGRAD)],
        "launcher_rules",
        True,
    ),
    "one alone and another switch": ([lacking(AG, **ONLY), PROJ | ONLY, lacking(FC2)], "", False),
}


@pytest.mark.parametrize("name", RELAXED)
def test_a_relaxation_is_proven_only_if_it_alone_is_enough(name: str) -> None:
    operators, field, proven = RELAXED[name]
    given = problem(*operators, **TE)
    with pytest.raises(InfeasibleError) as caught:
        solved(given)
    relaxation = caught.value.relaxation
    assert relaxation is not None
    assert relaxation.proven == relaxation.enough == proven
    assert relaxation.field.startswith(field)
    changed = json.loads(json.dumps(dump_model(given)))
    set_field(changed, relaxation.field, relaxation.value)
    if proven:
        solved(validate(CompassProblem, changed).sorted())
    else:
        assert "no change of one operator is enough" in caught.value.message
        with pytest.raises(InfeasibleError):
            solved(validate(CompassProblem, changed).sorted())


def test_what_was_worked_out_of_a_problem_is_not_taken_for_another() -> None:
    given = problem(G1)
    assert solved(given).choices[0].degree == 8
    other = given.model_copy(update={"operators": problem({**G1, "max_degree": 4}).operators})
    assert solved(other).choices[0].degree == 4
    assert solved(given).choices[0].degree == 8
    assert other != given
    assert given == problem(G1), "what is kept tells no two problems apart"
