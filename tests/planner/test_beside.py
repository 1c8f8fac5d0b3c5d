"""Arrays beside a problem: a plan names them by base name and digest, and says where it looked for them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner import api, papers
from planner.beside import Beside, find
from planner.derivation.clusters import name_only
from planner.errors import BadInputError
from planner.paper import Attached
from planner.plan import Plan

Run = Callable[..., Any]


def attach(problem: Any, beside: Beside) -> Attached[Any]:
    """Stands for a paper's own: the file that the notes name, of which the problem keeps base name and digest.

    Times of the images are those in the file, as the tokens of a routing decide what its layer costs.
    """
    noted = problem.notes
    if noted is None:
        return Attached(problem, {})
    digest = noted.get("sha256")
    if digest is None or digest not in beside.kept:
        found = find(beside, noted["file"], digest, "notes.file")
        digest = found.sha256
        beside.kept[digest] = float(found.path.read_text())
    name = Path(noted["file"]).name
    option = problem.groups[0].options[0].model_copy(update={"time_s": beside.kept[digest]})
    group = problem.groups[0].model_copy(update={"options": (option,)})
    changes = {"notes": {"file": name, "sha256": digest}, "groups": (group, *problem.groups[1:])}
    return Attached(problem.model_copy(update=changes), {name: digest})


@pytest.fixture(autouse=True)
def paper_with_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    paper = dataclasses.replace(papers.get("zellige"), attach=attach)
    monkeypatch.setattr(papers, "get", lambda name: paper)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "times.txt").write_text("1.25")
    return folder


@pytest.fixture
def problem_with_file(problem: dict[str, Any], data: Path) -> str:
    path = data.parent / "problem.json"
    path.write_text(json.dumps(problem | {"notes": {"file": "data/times.txt"}}))
    return str(path)


@pytest.fixture
def plan_file(problem_with_file: str, data: Path) -> str:
    """A plan beside the folder of its arrays, not in it."""
    path = data.parent / "plan.json"
    api.dump(api.solve(problem_with_file), path)
    return str(path)


SHA256 = hashlib.sha256(b"1.25").hexdigest()


def test_a_plan_names_its_arrays_by_base_name_and_digest_and_never_by_a_path(plan_file: str, data: Path) -> None:
    text = Path(plan_file).read_text()
    assert json.loads(text)["inputs"]["arrays"] == {"times.txt": SHA256}
    assert json.loads(text)["problem"]["notes"] == {"file": "times.txt", "sha256": SHA256}
    assert str(data) not in text
    assert "data/" not in text


def test_arrays_are_looked_for_where_the_plan_lies_unless_data_says_where(plan_file: str, data: Path) -> None:
    with pytest.raises(BadInputError) as raised:
        api.check(plan_file)
    assert (raised.value.code, raised.value.where) == ("missing_field", "notes.file")
    assert f"times.txt with sha256 {SHA256} is not in {data.parent}" in raised.value.message
    assert "--data DIR" in raised.value.message
    assert api.check(plan_file, data=data).violations == ()
    assert api.check(api.load(plan_file), data=data).violations == ()
    assert api.check(api.load(plan_file, data=data)).violations == ()
    shutil.copy(plan_file, data / "plan.json")
    assert api.check(data / "plan.json").violations == ()


def test_another_file_of_the_name_is_refused(plan_file: str, data: Path) -> None:
    (data / "times.txt").write_text("1.5")
    with pytest.raises(BadInputError) as raised:
        api.check(plan_file, data=data)
    assert raised.value.code == "array_mismatch"
    assert SHA256 in raised.value.message
    assert hashlib.sha256(b"1.5").hexdigest() in raised.value.message


def test_a_plan_reads_no_file_above_its_folder(plan_file: str, data: Path) -> None:
    document = json.loads(Path(plan_file).read_text())
    document["problem"]["notes"]["file"] = "../times.txt"
    (data.parent / "times.txt").write_text("1.25")
    (data / "times.txt").unlink()
    (data / "plan.json").write_text(json.dumps(document))
    with pytest.raises(BadInputError, match="is not in"):
        api.check(data / "plan.json")


def test_a_plan_that_was_just_made_needs_no_file_any_more(problem_with_file: str, data: Path) -> None:
    made = api.solve(problem_with_file)
    shutil.rmtree(data)
    assert api.check(made).violations == ()
    answer = api.what_if(made, "cluster.memory_cap_bytes=200")
    assert answer.as_object()["path"] == "cluster.memory_cap_bytes"


def test_a_difference_needs_no_arrays(plan_file: str, data: Path) -> None:
    shutil.rmtree(data)
    assert api.diff(plan_file, plan_file).same


def test_a_loaded_plan_without_its_arrays_can_be_read_and_written(plan_file: str) -> None:
    loaded = api.load(plan_file)
    assert isinstance(loaded, Plan)
    assert loaded.to_bytes() == Path(plan_file).read_bytes()


def test_the_command_takes_the_folder_of_the_arrays(plan: Run, plan_file: str, data: Path) -> None:
    for words in (["check"], ["show"], ["compare"], ["show", "--what-if", "cluster.memory_cap_bytes=200"]):
        ran = plan(*words, plan_file)
        assert ran.code == 2, words
        assert f"times.txt with sha256 {SHA256}" in ran.err
        ran = plan(*words, plan_file, "--data", str(data))
        assert ran.code == 0, ran.err
    assert plan("diff", plan_file, plan_file).code == 0
    assert plan("check", plan_file, "--data", str(data / "times.txt")).code == 2


def test_a_problem_looks_for_files_in_its_own_folder(plan: Run, problem_with_file: str, data: Path) -> None:
    assert plan("solve", problem_with_file).code == 0
    assert plan("compare", problem_with_file).code == 0
    (data / "times.txt").unlink()
    ran = plan("--error-format", "json", "solve", problem_with_file)
    assert (ran.code, ran.error["code"], ran.error["where"]) == (2, "missing_field", "notes.file")
    assert "relative to its folder" in ran.error["message"]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("logs/two.log", "two.log"),
        ("all_gather=logs/two.log", "all_gather=two.log"),
        ("all_gather=two.log", "all_gather=two.log"),
        ("odd/a=b.log", "a=b.log"),
        ("h200-sxm", "h200-sxm"),
    ],
)
def test_a_file_keeps_its_base_name_and_what_it_is_of(written: str, kept: str) -> None:
    holder: dict[str, Any] = {"log": written}
    name_only(holder, "log")
    assert holder == {"log": kept}
