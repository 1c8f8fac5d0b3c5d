"""The plan document: no unchecked plan can exist, and the check bites on every part of the envelope."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import api, papers
from planner.certificate import Objective, certify
from planner.errors import BadInputError, LimitError, RefutedError
from planner.paper import Bound, DeriveOptions
from planner.papers import AnyPaper
from planner.plan import Options, Plan, Timings, load_document, load_plan, make_plan
from planner.pose import pose
from planner.verification import check_plan, require_true
from solvers.report import Limits, Report, Status


@pytest.fixture
def made(problem: dict[str, Any]) -> Plan:
    return api.solve(problem)


def document_of(plan: Plan) -> dict[str, Any]:
    return cast(dict[str, Any], json.loads(plan.to_bytes()))


# --- making -------------------------------------------------------------------------------------------------------


def lying_paper(change: Callable[[Any], Any]) -> AnyPaper:
    """Zellige with an engine whose solution is changed after it is found."""
    paper = papers.get("zellige")

    def solve(problem: Any, method: str | None, limits: Limits) -> tuple[Any, Report]:
        solution, report = paper.solve(problem, method, limits)
        return change(solution), report

    return dataclasses.replace(paper, solve=solve)


LIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a faster step": (
        "metric_makespan",
        lambda s: s.model_copy(update={"metrics": s.metrics.model_copy(update={"makespan_s": 0.001})}),
    ),
    "a sequence left out": ("missing_sequence", lambda s: s.model_copy(update={"placements": s.placements[1:]})),
    "a sequence placed twice": (
        "duplicate_sequence",
        lambda s: s.model_copy(update={"placements": (*s.placements, s.placements[0])}),
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_engine_that_lies_makes_no_plan(problem: dict[str, Any], lie: str) -> None:
    code, change = LIES[lie]
    posed = dataclasses.replace(pose(problem, DeriveOptions()), paper=lying_paper(change))
    with pytest.raises(RefutedError, match="this is a bug") as caught:
        make_plan(posed, Options())
    assert code in {violation.split(":")[0] for violation in caught.value.violations}
    assert caught.value.exit_code == 5


def test_shares_that_rounding_puts_above_all_there_is_are_all_there_is(problem: dict[str, Any]) -> None:
    shares = dict.fromkeys(("measured", "interpolated", "modelled"), 0.0) | {"stated": math.nextafter(1.0, 2.0)}
    paper = dataclasses.replace(papers.get("zellige"), shares=lambda *_: shares)
    plan = make_plan(dataclasses.replace(pose(problem, DeriveOptions()), paper=paper), Options())
    assert plan.sources["stated"] == 1.0
    assert load_plan(plan.to_bytes(), "plan").sources == plan.sources


def test_a_bound_past_the_objective_makes_no_plan(problem: dict[str, Any]) -> None:
    wrong = dataclasses.replace(papers.get("zellige"), bounds=lambda *_: (Bound(99.0, "combinatorial", "LB9"),))
    with pytest.raises(RefutedError, match="LB9 proves") as caught:
        make_plan(dataclasses.replace(pose(problem, DeriveOptions()), paper=wrong), Options())
    assert caught.value.code == "lower_bound"


def test_an_engine_that_gives_up_makes_no_plan(problem: dict[str, Any]) -> None:
    def give_up(*_: Any) -> Any:
        raise LimitError("no time", code="time_limit")

    tired = dataclasses.replace(papers.get("zellige"), solve=give_up)
    with pytest.raises(LimitError):
        make_plan(dataclasses.replace(pose(problem, DeriveOptions()), paper=tired), Options())


def test_a_made_plan_passes_its_check(made: Plan) -> None:
    assert check_plan(made).violations == ()
    require_true(made)


def test_an_unknown_method_names_the_nearest(problem: dict[str, Any]) -> None:
    with pytest.raises(BadInputError, match='did you mean "reference"') as caught:
        api.solve(problem, Options(method="referense"))
    assert caught.value.where == "--method"


def test_timings_name_the_phases_and_stay_out_of_the_plan(problem: dict[str, Any], made: Plan) -> None:
    timings: Timings = {}
    assert api.solve(problem, timings=timings).to_bytes() == made.to_bytes()
    assert list(timings) == ["solve", "check", "certify"]


def test_the_problem_in_a_plan_is_sorted_and_digested(problem: dict[str, Any], made: Plan) -> None:
    shuffled = copy.deepcopy(problem)
    shuffled["groups"].reverse()
    shuffled["configs"].reverse()
    for group in shuffled["groups"]:
        group["sequence_ids"].reverse()
        group["options"].reverse()
    assert api.solve(shuffled).to_bytes() == made.to_bytes()


def test_the_problem_document_is_not_changed(problem: dict[str, Any]) -> None:
    before = copy.deepcopy(problem)
    api.solve(problem)
    assert problem == before


def test_a_plan_holds_no_path_host_or_clock(problem_file: str, made: Plan) -> None:
    from_file = api.solve(problem_file)
    assert from_file.to_bytes() == made.to_bytes()
    assert Path(problem_file).parent.name.encode() not in from_file.to_bytes()


def test_options_of_a_derived_problem_are_refused_for_stated_costs(problem: dict[str, Any]) -> None:
    for options in (DeriveOptions(profile="h100-sxm"), DeriveOptions(extrapolate="roofline")):
        with pytest.raises(BadInputError, match="need a derived problem"):
            pose(problem, options)


@pytest.mark.parametrize(
    ("document", "code", "where"),
    [
        ([], "wrong_type", None),
        ({}, "missing_field", "paper"),
        ({"paper": 3}, "wrong_type", "paper"),
        ({"paper": "zelige"}, "out_of_range", "paper"),
        ({"paper": "zellige", "format_version": "2.0"}, "unsupported_version", "format_version"),
        ({"paper": "zellige", "format_version": 1}, "unsupported_version", "format_version"),
        ({"paper": "zellige", "problem": {}, "solution": {}}, "wrong_type", None),
    ],
)
def test_a_problem_names_its_paper_and_version(document: Any, code: str, where: str | None) -> None:
    with pytest.raises(BadInputError) as caught:
        pose(document, DeriveOptions())
    assert (caught.value.code, caught.value.where) == (code, where)


# --- certificate --------------------------------------------------------------------------------------------------

amounts = st.floats(1e-9, 1e9)


def report(bound: float | None = None) -> Report:
    return Report(Status.FEASIBLE, "engine", "fast", "1", 0.0, bound, "solver" if bound is not None else None)


@given(objective=amounts, lower=amounts, other=amounts)
def test_a_gap_is_relative_to_the_strongest_bound(objective: float, lower: float, other: float) -> None:
    lower, other = (min(value, objective * (1 - 1e-6)) for value in (lower, other))
    made = certify(Objective(objective, "min", "s"), report(other), (Bound(lower, "combinatorial", "LB0"),))
    strongest = max(lower, other)
    assert made.lower_bound == strongest
    assert made.upper_bound is None
    assert made.gap == (objective - strongest) / strongest
    assert made.status == "feasible"
    assert made.bound_kind == ("combinatorial" if lower >= other else "solver")


@given(objective=amounts, upper=amounts)
def test_a_maximum_has_an_upper_bound(objective: float, upper: float) -> None:
    upper = max(upper, objective * (1 + 1e-6))
    made = certify(Objective(objective, "max", "s"), report(), (Bound(upper, "fractional", "UB"),))
    assert (made.upper_bound, made.lower_bound) == (upper, None)
    assert made.gap == (upper - objective) / upper
    assert made.status == "feasible"


@given(objective=amounts, rounding=st.floats(-5e-10, 5e-10))
def test_a_bound_at_the_objective_but_for_rounding_proves_it_optimal(objective: float, rounding: float) -> None:
    made = certify(
        Objective(objective, "min", "s"), report(), (Bound(objective * (1 + rounding), "exhaustive", "exact"),)
    )
    assert (made.status, made.gap, made.lower_bound) == ("optimal", 0.0, objective)


@given(
    objective=amounts,
    rounding=st.tuples(st.floats(-5e-10, 5e-10), st.floats(-5e-10, 5e-10)),
    order=st.permutations(["exhaustive", "combinatorial"]),
)
def test_of_bounds_that_are_met_the_exhaustive_one_is_stated(
    objective: float, rounding: tuple[float, float], order: list[Any]
) -> None:
    bounds = tuple(Bound(objective * (1 + off), kind, kind) for kind, off in zip(order, rounding, strict=True))
    made = certify(Objective(objective, "max", "tokens/s"), report(), bounds)
    assert (made.status, made.upper_bound, made.bound_kind) == ("optimal", objective, "exhaustive")


def test_an_exhaustive_bound_that_is_not_met_is_no_better_than_another() -> None:
    weak = Bound(8.0, "exhaustive", "a part"), Bound(9.0, "combinatorial", "LB0")
    assert certify(Objective(10.0, "min", "s"), report(), weak).bound_kind == "combinatorial"
    met = Bound(8.0, "exhaustive", "a part"), Bound(10.0, "combinatorial", "LB0")
    assert certify(Objective(10.0, "min", "s"), report(), met).bound_kind == "combinatorial"


@pytest.mark.parametrize(("sense", "bound", "side"), [("min", 10.1, "lower_bound"), ("max", 9.9, "upper_bound")])
def test_a_bound_past_the_objective_is_never_cut_to_a_proof(sense: str, bound: float, side: str) -> None:
    with pytest.raises(RefutedError) as caught:
        certify(Objective(10.0, sense, "s"), report(bound), ())
    assert caught.value.code == side


def test_a_bound_of_zero_proves_nothing() -> None:
    made = certify(Objective(5.0, "min", "s"), report(), (Bound(0.0, "combinatorial", "LB0"),))
    assert (made.status, made.gap) == ("feasible", 1.0)


def test_zero_is_optimal_where_the_bound_is_zero() -> None:
    made = certify(Objective(0.0, "min", "s"), report(), (Bound(0.0, "combinatorial", "LB0"),))
    assert (made.status, made.gap) == ("optimal", 0.0)


@pytest.mark.parametrize("version", [1, 1.0])
def test_a_version_that_lost_its_quotes_is_asked_to_be_quoted(version: float) -> None:
    with pytest.raises(BadInputError, match=r'quote it, "1\.0"'):
        pose({"paper": "zellige", "format_version": version}, DeriveOptions())


# --- reading and writing ------------------------------------------------------------------------------------------


def test_a_plan_is_loaded_and_dumped_byte_for_byte(made: Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    api.dump(made, str(path))
    first = path.read_bytes()
    api.dump(api.load(str(path)), str(path))
    assert path.read_bytes() == first == made.to_bytes()
    assert api.check(str(path)).violations == ()


def test_a_plan_may_be_yaml(made: Plan, tmp_path: Path) -> None:
    import yaml

    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump(document_of(made)))
    assert api.load(str(path)).to_bytes() == made.to_bytes()


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.99"])
def test_another_minor_version_is_read(made: Plan, version: str) -> None:
    document = document_of(made) | {"format_version": version}
    assert check_plan(load_document(document, "plan")).violations == ()


@pytest.mark.parametrize("version", ["2.0", "0.9", "10.0", "", "one", None, 1.0, "1", "1.", "1.zzz", "1.0x", "1.0\n"])
def test_another_major_version_is_refused_by_name(made: Plan, version: object) -> None:
    with pytest.raises(BadInputError, match=r"this planner reads 1\.x") as caught:
        load_document(document_of(made) | {"format_version": version}, "plan")
    assert caught.value.code == "unsupported_version"
    assert repr(version) in caught.value.message


def test_the_version_of_the_problem_inside_is_read_too(made: Plan) -> None:
    document = document_of(made)
    document["problem"]["format_version"] = "2.0"
    with pytest.raises(BadInputError, match=r"this problem has format_version '2\.0'"):
        load_document(document, "plan")


@pytest.mark.parametrize("field", sorted(["paper", "planner", "inputs", "problem", "solution", "certificate", "memory",
                                          "warnings", "sources", "cost_error", "solver"]))  # fmt: skip
def test_every_part_of_the_envelope_is_required(made: Plan, field: str) -> None:
    document = document_of(made)
    del document[field]
    with pytest.raises(BadInputError) as caught:
        load_document(document, "plan")
    assert (caught.value.code, caught.value.where) == ("missing_field", field)


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        (("certficate",), {}, "unknown_field"),
        (("certificate", "objectve"), 1.0, "unknown_field"),
        (("certificate", "gap"), "0", "wrong_type"),
        (("certificate", "status"), "good", "out_of_range"),
        (("solution", "placements"), None, "wrong_type"),
        (("solution", "metrics", "makespan_s"), "1", "wrong_type"),
        (("problem", "cluster", "num_ranks"), 0, "out_of_range"),
        (("memory",), {}, "wrong_type"),
        (("inputs", "derive"), "x", "wrong_type"),
        (("inputs", "derive"), 1, "wrong_type"),
        (("sources", "measured"), -1e-9, "out_of_range"),
        (("sources", "stated"), 1 + 1e-9, "out_of_range"),
        (("solver", "seed"), -1, "out_of_range"),
    ],
)
def test_a_fault_in_a_plan_is_named_from_the_root(made: Plan, path: tuple[str, ...], value: object, code: str) -> None:
    with pytest.raises(BadInputError) as caught:
        load_document(changed(document_of(made), path, value), "plan")
    assert (caught.value.code, caught.value.where) == (code, ".".join(path))


@pytest.mark.parametrize("data", [b"[]", b"3", b"{}", b'{"problem": {}}'])
def test_what_is_not_a_plan_is_refused(data: bytes) -> None:
    with pytest.raises(BadInputError):
        load_plan(data, "plan.json")


# --- tampering ----------------------------------------------------------------------------------------------------


def changed(document: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """The document with one value replaced."""
    parent: Any = document
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    return document


TAMPERING: dict[str, tuple[tuple[str | int, ...], Any, str]] = {
    "objective": (("certificate", "objective"), 1.0, "objective"),
    "gap": (("certificate", "gap"), 0.25, "gap"),
    "status": (("certificate", "status"), "feasible", "status"),
    "lower_bound past the objective": (("certificate", "lower_bound"), 100.0, "lower_bound"),
    "lower_bound weakened": (("certificate", "lower_bound"), 1.0, "gap"),
    "lower_bound absent": (("certificate", "lower_bound"), None, "lower_bound"),
    "two bounds": (("certificate", "upper_bound"), 4.5, "unit"),
    "unit": (("certificate", "unit"), "ms", "unit"),
    "sense": (("certificate", "sense"), "max", "unit"),
    "a cost": (("problem", "groups", 0, "options", 0, "time_s"), 1.25, "problem_sha256"),
    "notes": (("problem", "notes"), {"approved": True}, "problem_sha256"),
    "digest": (("inputs", "problem_sha256"), "0" * 64, "problem_sha256"),
    "bytes in memory": (("memory", 0, "bytes"), 1.0, "memory"),
    "capacity in memory": (("memory", 0, "capacity_bytes"), 1e15, "memory"),
    "cause in memory": (("memory", 0, "cause"), "weights", "memory"),
    "place in memory": (("memory", 0, "where"), "rank 9", "memory"),
    "no memory": (("memory",), [], "memory"),
    "share of sources": (("sources", "measured"), 0.9, "sources"),
    "another source": (("sources", "guessed"), 0.0, "sources"),
    "an added warning": (("warnings",), [{"code": "near_capacity", "message": "full"}], "warnings"),
    "makespan in the solution": (("solution", "metrics", "makespan_s"), 1.0, "metric_makespan"),
}


@pytest.mark.parametrize("what", TAMPERING)
def test_every_part_of_a_plan_that_is_tampered_with_is_refuted(made: Plan, what: str) -> None:
    path, value, code = TAMPERING[what]
    plan = load_document(changed(document_of(made), path, value), "plan")
    assert code in {violation.code for violation in check_plan(plan).violations}
    with pytest.raises(RefutedError):
        require_true(plan)


def test_a_warning_taken_out_is_refuted(problem: dict[str, Any]) -> None:
    problem["cluster"]["memory_cap_bytes"] = 40.0  # "long" takes 35 of them: 87.5 %
    document = document_of(api.solve(problem))
    assert [warning["code"] for warning in document["warnings"]] == ["near_capacity"]
    document["warnings"] = []
    assert [v.code for v in check_plan(load_document(document, "plan")).violations] == ["warnings"]


def test_a_stronger_bound_than_ours_is_claimed_and_not_refuted(problem: dict[str, Any]) -> None:
    made = api.solve(problem)
    weak = dataclasses.replace(made.paper, bounds=lambda *_: (Bound(1.0, "combinatorial", "LB0"),))
    found = check_plan(dataclasses.replace(made, paper=weak))
    assert found.violations == ()
    assert found.claimed_bound
    assert not check_plan(made).claimed_bound


def test_a_bound_of_ours_past_the_objective_refutes(problem: dict[str, Any]) -> None:
    made = api.solve(problem)
    strong = dataclasses.replace(made.paper, bounds=lambda *_: (Bound(1e6, "combinatorial", "LB0"),))
    assert "lower_bound" in {v.code for v in check_plan(dataclasses.replace(made, paper=strong)).violations}


def test_the_versions_of_planner_and_solver_are_no_part_of_the_truth(made: Plan) -> None:
    document = changed(document_of(made), ("solver", "version"), "0.0")
    assert check_plan(load_document(document | {"planner": "0.0.1"}, "plan")).violations == ()


def test_a_gap_is_finite() -> None:
    made = certify(Objective(1.0, "min", "s"), report(), (Bound(1e-300, "combinatorial", "LB0"),))
    assert math.isfinite(made.gap)
