"""What changed between two plans: inputs, decisions, metrics and certificate, never versions or formatting."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.difference import SECTIONS, Change, Difference, compare
from planner.paper import Warned
from planner.plan import Plan


@pytest.fixture
def made(problem: dict[str, Any]) -> Plan:
    return api.solve(problem)


def sections(difference: Difference) -> set[str]:
    return {change.section for change in difference.changes}


def scaled(plan: Plan, factor: float) -> Plan:
    """The plan with its certificate's objective and metrics multiplied."""
    metrics = plan.solution.metrics
    metrics = metrics.model_copy(
        update={
            "makespan_s": metrics.makespan_s * factor,
            "rank_time_s": tuple(time * factor for time in metrics.rank_time_s),
        }
    )
    certificate = plan.certificate.model_copy(update={"objective": plan.certificate.objective * factor})
    return dataclasses.replace(
        plan, solution=plan.solution.model_copy(update={"metrics": metrics}), certificate=certificate
    )


def test_a_plan_is_the_same_as_itself(made: Plan) -> None:
    assert compare(made, made) == Difference(())
    assert compare(made, made).same


def test_planner_and_solver_are_ignored(made: Plan) -> None:
    other = dataclasses.replace(
        made, planner="9.9.9", solver=made.solver.model_copy(update={"engine": "other", "seed": 7, "version": "0"})
    )
    assert compare(made, other).same


def test_what_was_looked_up_is_not_listed_number_by_number(made: Plan) -> None:
    old, new = (
        dataclasses.replace(
            made,
            inputs=made.inputs.model_copy(
                update={"derive": {"dtype": dtype, "resolved": {"fits": {"alpha_s": alpha_s, "rows": [alpha_s]}}}}
            ),
        )
        for dtype, alpha_s in (("bf16", 1.0), ("fp8", 2.0))
    )
    assert [change.path for change in compare(old, new).changes] == ["derive.dtype"]


def test_the_order_of_keys_is_ignored(made: Plan, tmp_path: Path) -> None:
    document = json.loads(made.to_bytes())
    (tmp_path / "old.json").write_text(json.dumps(document))
    (tmp_path / "new.json").write_text(json.dumps(dict(reversed(document.items()))))
    assert api.diff(str(tmp_path / "old.json"), str(tmp_path / "new.json")).same


def test_metrics_within_the_tolerance_are_the_same(made: Plan) -> None:
    assert compare(made, scaled(made, 1 + 1e-10)).same
    assert not compare(made, scaled(made, 1 + 1e-6)).same
    assert compare(made, scaled(made, 1 + 1e-6), rtol=1e-5).same
    assert not compare(made, scaled(made, 1 + 1e-15), rtol=0.0).same


def test_metrics_beyond_the_tolerance_are_named_with_both_values(made: Plan) -> None:
    difference = compare(made, scaled(made, 2.0))
    assert sections(difference) == {"metrics", "certificate"}
    assert Change("metrics", "makespan_s", 4.5, 9.0) in difference.changes
    assert Change("certificate", "objective", 4.5, 9.0) in difference.changes


@pytest.mark.parametrize(("gap", "same"), [(1.4999999e-4, True), (1.5000001e-4, True), (1.6e-4, False)])
def test_the_gap_is_compared_absolutely_being_relative_already(made: Plan, gap: float, same: bool) -> None:
    old, new = (
        dataclasses.replace(made, certificate=made.certificate.model_copy(update={"gap": value}))
        for value in (1.5e-4, gap)
    )
    assert compare(old, new, rtol=1e-9).same == same


def test_decisions_are_compared_exactly(problem: dict[str, Any], made: Plan) -> None:
    placements = made.solution.placements
    moved = placements[0].model_copy(update={"ranks": (3,)})
    other = dataclasses.replace(
        made, solution=made.solution.model_copy(update={"placements": (moved, *placements[1:])})
    )
    difference = compare(made, other, rtol=1.0)
    assert [change.path for change in difference.changes] == [f"placements.{placements[0].sequence_id}"]
    assert sections(difference) == {"decisions"}


def test_inputs_are_compared_exactly_and_by_id(problem: dict[str, Any], made: Plan) -> None:
    problem["groups"][1]["options"][0]["time_s"] = 8.0 * (1 + 1e-12)
    problem["notes"] = {"ticket": 12}
    difference = compare(made, api.solve(problem))
    assert [change.path for change in difference.changes] == [
        "problem.groups.long.options.1.time_s",
        "problem.notes",
    ]
    assert difference.changes[1].old is None


def test_an_added_sequence_shows_where_it_runs(problem: dict[str, Any], made: Plan) -> None:
    problem["groups"][0]["sequence_ids"].append("i3")
    difference = compare(made, api.solve(problem))
    added = [change for change in difference.changes if change.path == "placements.i3"]
    assert [(change.section, change.old) for change in added] == [("decisions", None)]
    assert [change.section for change in difference.changes] == sorted(
        (change.section for change in difference.changes), key=SECTIONS.index
    )


def test_warnings_and_sources_belong_to_the_certificate(made: Plan) -> None:
    other = dataclasses.replace(
        made, warnings=(Warned("near_capacity", "full"),), sources=made.sources | {"measured": 1.0, "stated": 0.0}
    )
    paths = {change.path for change in compare(made, other).changes}
    assert paths == {"warnings.0", "sources.measured", "sources.stated"}


def test_plans_of_two_papers_differ_in_the_paper_alone(made: Plan) -> None:
    other = dataclasses.replace(made, paper=dataclasses.replace(made.paper, name="layout"))
    assert compare(made, other).changes == (Change("inputs", "paper", "zellige", "layout"),)


# --- the command --------------------------------------------------------------------------------------------------


@pytest.fixture
def files(problem: dict[str, Any], made: Plan, tmp_path: Path) -> tuple[str, str]:
    """Two plans: of the problem, and of the problem with images that take longer."""
    old, new = str(tmp_path / "old.json"), str(tmp_path / "new.json")
    api.dump(made, old)
    problem["groups"][0]["options"][0]["time_s"] = 1.5
    problem["notes"] = {"a|b": "x\ny"}
    api.dump(api.solve(problem), new)
    return old, new


def test_same_plans_exit_with_0(plan: Callable[..., Any], files: tuple[str, str]) -> None:
    ran = plan("diff", files[0], files[0])
    assert (ran.code, ran.out, ran.err) == (0, "same\n", "")
    assert plan("diff", files[0], files[0], "--format", "json").document == {"changes": [], "same": True}
    assert plan("diff", files[0], files[0], "--format", "markdown").out == "No change.\n"


def test_different_plans_exit_with_1_and_their_changes(plan: Callable[..., Any], files: tuple[str, str]) -> None:
    ran = plan("diff", *files)
    assert (ran.code, ran.err) == (1, "")
    assert "inputs: 2 changed" in ran.out.splitlines()
    assert "  problem.groups.img.options.0.time_s: 1 s -> 1.5 s (+50.000%)" in ran.out.splitlines()


def test_json_holds_every_change(plan: Callable[..., Any], files: tuple[str, str]) -> None:
    ran = plan("diff", *files, "--format", "json")
    assert ran.code == 1
    assert ran.document["same"] is False
    change = {"section": "inputs", "path": "problem.groups.img.options.0.time_s", "old": 1.0, "new": 1.5}
    assert change in ran.document["changes"]


def test_markdown_is_one_table_a_section(plan: Callable[..., Any], files: tuple[str, str]) -> None:
    lines = plan("diff", *files, "--format", "markdown").out.splitlines()
    start = lines.index("### inputs: 2 changed")
    assert lines[start : start + 4] == ["### inputs: 2 changed", "", "| field | old | new |", "|---|---|---|"]
    rows = [line for line in lines if line.startswith("| `")]
    assert "| `problem.groups.img.options.0.time_s` | 1 s | 1.5 s (+50.000%) |" in rows
    assert all(row.replace("\\|", "").count("|") == 4 for row in rows), "a | in an id or a value breaks the table"


def test_many_changes_are_cut_in_text_and_complete_in_json(
    plan: Callable[..., Any], problem: dict[str, Any], tmp_path: Path
) -> None:
    old, new = str(tmp_path / "old.json"), str(tmp_path / "new.json")
    problem["notes"] = {f"n{i}": i for i in range(40)}
    api.dump(api.solve(problem), old)
    problem["notes"] = {f"n{i}": -i for i in range(1, 41)}
    api.dump(api.solve(problem), new)
    text = plan("diff", old, new).out
    assert "  and 21 more" in text.splitlines()  # n0 gone, n1 to n39 changed, n40 new: 41, of which 20 are shown
    assert len(plan("diff", old, new, "--format", "json").document["changes"]) == 41


@pytest.mark.parametrize("arguments", [("no.json", "no.json"), ("--rtol", "nan"), ("--rtol", "-1")])
def test_an_error_of_diff_is_neither_same_nor_different(
    plan: Callable[..., Any], files: tuple[str, str], arguments: tuple[str, ...]
) -> None:
    extra = arguments if arguments[0].startswith("--") else ()
    paths = files if extra else arguments
    assert plan("diff", *paths, *extra).code == 2
