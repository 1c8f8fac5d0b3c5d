"""What every paper folder must keep: its shape, its source, examples that plan and check, honest baselines."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner import api, papers
from planner.comparison import compare_document
from planner.envelope import dump_model
from planner.errors import BadInputError
from planner.paper import SOURCES, DeriveOptions, Paper
from planner.plan import Options, Plan, load_document
from planner.pose import pose
from planner.schema import problem_schema
from planner.validation import forms_of
from planner.verification import check_plan
from planner.view import View
from solvers.report import Limits

PAPERS = papers.names()
EXAMPLES = [(paper, example) for paper in PAPERS for example in papers.examples(paper)]
WITHOUT_BYTES = {("janus", "placement")}
"""Examples whose problem states nothing in bytes."""
OF_TASK = {("janus", "paper"): "placement", ("janus", "exact"): "placement"}
"""Examples of methods that are not for the default one's task."""

every_paper = pytest.mark.parametrize("name", PAPERS)
every_example = pytest.mark.parametrize(("name", "example"), EXAMPLES)


@functools.cache
def planned(name: str, example: str) -> Plan:
    """The plan of an example."""
    return api.solve(papers.example(name, example))


def folder(name: str) -> Path:
    return Path(inspect.getfile(papers)).parent / name


def test_every_folder_is_a_paper_and_nothing_else_is() -> None:
    folders = sorted(entry.name for entry in folder(".").iterdir() if (entry / "__init__.py").is_file())
    assert folders == PAPERS
    assert PAPERS


@every_paper
def test_a_paper_is_a_record_named_as_its_folder(name: str) -> None:
    paper = papers.get(name)
    assert isinstance(paper, Paper)
    assert paper.name == name
    assert paper.sense in ("min", "max")
    assert paper.title
    assert paper.decision


@every_paper
def test_a_paper_cites_its_source_with_an_identifier(name: str) -> None:
    paper = papers.get(name)
    docstring = importlib.import_module(f"planner.papers.{name}").__doc__
    identifier = paper.citation.split("arXiv ")[-1].split()[0].rstrip(",;.")
    assert any(character.isdigit() for character in identifier)
    assert docstring is not None
    assert identifier in docstring


@every_paper
def test_methods_and_violations_are_named_once(name: str) -> None:
    paper = papers.get(name)
    assert paper.methods
    assert len(set(paper.methods)) == len(paper.methods)
    assert paper.violations
    assert len(set(paper.violations)) == len(paper.violations)


@every_paper
def test_a_paper_has_the_files_that_readers_look_for(name: str) -> None:
    for file in ("problem.py", "cost.py", "formulation.py", "check.py", "baselines.py", "examples/default.json"):
        assert (folder(name) / file).is_file(), file


@every_paper
def test_both_forms_of_a_problem_forbid_unknown_fields(name: str) -> None:
    paper = papers.get(name)
    models = [form for model in (paper.problem_model, paper.derived_model) for form in forms_of(model)]
    for model in models:
        assert model.model_config["extra"] == "forbid"
        assert model.model_config["frozen"]
    shown = {form["$ref"].split("/")[-1] for form in problem_schema(name)["anyOf"]}
    assert shown == {model.__name__ for model in models}


@every_paper
def test_an_example_shows_each_cost_form(name: str) -> None:
    documents = [papers.example(name, example) for example in papers.examples(name)]
    assert papers.examples(name)[0] == "default"
    assert any("derive" in document for document in documents)
    assert any("derive" not in document for document in documents)


@every_example
def test_an_example_plans_and_checks(name: str, example: str) -> None:
    plan = planned(name, example)
    report = check_plan(plan)
    assert report.violations == ()
    assert report.bounds
    assert plan.certificate.unit == plan.paper.unit(plan.problem)
    assert load_document(json.loads(plan.to_bytes()), "plan").to_bytes() == plan.to_bytes()


@every_example
def test_planning_twice_gives_the_same_bytes(name: str, example: str) -> None:
    assert api.solve(papers.example(name, example)).to_bytes() == planned(name, example).to_bytes()


@every_example
def test_shares_of_sources_are_named_and_sum_to_one(name: str, example: str) -> None:
    plan = planned(name, example)
    assert tuple(plan.sources) == SOURCES
    assert sum(plan.sources.values()) == pytest.approx(1)


@every_example
def test_memory_is_within_capacity(name: str, example: str) -> None:
    used: dict[str, float] = {}
    for row in planned(name, example).memory:
        used[row.where] = used.get(row.where, 0.0) + row.bytes
        assert row.bytes >= 0
        assert used[row.where] <= row.capacity_bytes * (1 + 1e-9)
    assert bool(used) == ((name, example) not in WITHOUT_BYTES)


@every_example
def test_no_baseline_is_better_than_the_bound(name: str, example: str) -> None:
    options = Options(limits=Limits(effort=1.0 if example == "default" else 0.05))
    comparison = compare_document(json.loads(planned(name, example).to_bytes()), options)
    assert comparison.baselines
    certificate = comparison.plan.certificate
    for baseline in comparison.baselines:
        assert (baseline.objective is None) <= bool(baseline.note), "a baseline that fails says why"
        if baseline.feasible and baseline.objective is not None and not baseline.outside:
            better_than_bound = baseline.objective - certificate.bound
            assert better_than_bound * (1 if certificate.sense == "min" else -1) >= -1e-9 * abs(certificate.bound)
        if baseline.solution is not None:
            assert baseline.objective == pytest.approx(comparison.plan.paper.objective(baseline.solution), rel=1e-9)


@pytest.mark.parametrize(("name", "method"), [(name, method) for name in PAPERS for method in papers.get(name).methods])
def test_every_method_plans_an_example_of_its_task_under_its_name(name: str, method: str) -> None:
    plan = api.solve(papers.example(name, OF_TASK.get((name, method), "default")), Options(method=method))
    assert plan.solver.method == method
    assert check_plan(plan).violations == ()


@pytest.mark.parametrize(("name", "example"), [pair for pair in EXAMPLES if pair[1] in ("default", "derived")])
def test_yaml_and_json_give_the_same_plan(name: str, example: str, tmp_path: Path) -> None:
    path = tmp_path / "problem.yaml"
    path.write_text(yaml.safe_dump(papers.example(name, example)))
    assert api.solve(str(path)).to_bytes() == planned(name, example).to_bytes()


@every_paper
def test_a_problem_on_standard_input_gives_the_same_plan(name: str, plan: Callable[..., Any]) -> None:
    ran = plan("solve", "-", stdin=plan("example", name).output)
    assert (ran.code, ran.err) == (0, "")
    assert ran.output == planned(name, "default").to_bytes()


@every_example
def test_the_explicit_form_of_a_problem_gives_the_same_solution_and_certificate(name: str, example: str) -> None:
    derived = planned(name, example)
    posed = pose(papers.example(name, example), DeriveOptions())
    explicit = api.solve(dump_model(posed.problem))
    assert explicit.inputs.derive is None
    assert explicit.inputs.problem_sha256 == derived.inputs.problem_sha256
    for part in ("solution", "certificate", "memory", "sources", "warnings"):
        assert getattr(explicit, part) == getattr(derived, part), part


@every_example
def test_a_plan_has_a_view_a_short_summary_decisions_and_metrics(name: str, example: str) -> None:
    plan = planned(name, example)
    view = plan.paper.view(plan.problem, plan.solution)
    assert isinstance(view, View)
    assert view.sections
    assert 1 <= len(plan.paper.summary(plan.problem, plan.solution)) <= 8
    assert plan.paper.decisions(plan.solution)
    assert plan.paper.metrics(plan.solution)


@every_example
def test_a_plan_file_names_no_path(name: str, example: str) -> None:
    text = planned(name, example).to_bytes().decode()
    assert str(Path.cwd()) not in text
    assert str(Path.home()) not in text or str(Path.home()) == "/"


def test_an_unknown_paper_or_example_names_the_nearest() -> None:
    with pytest.raises(BadInputError, match='did you mean "zellige"'):
        papers.get("zelige")
    with pytest.raises(BadInputError, match='did you mean "derived"'):
        papers.example("zellige", "derive")
