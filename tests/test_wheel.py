"""The wheel: three packages at its top level and nothing else, with their data, small."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAX_BYTES = 10 * 2**20

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("build") is None, reason="the build package, of the dev extra, is not installed"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that hatchling builds from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = folder.glob("girih-*.whl")
    return file


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    """Every path in the wheel."""
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_top_level_is_exactly_the_three_packages(names: set[str]) -> None:
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"planner", "profiles", "solvers"}


def test_it_is_at_most_10_mib(wheel: Path) -> None:
    assert wheel.stat().st_size <= MAX_BYTES


def test_it_holds_every_file_of_the_packages_that_git_does(names: set[str]) -> None:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "planner", "profiles", "solvers"]
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("not a git checkout: nothing to compare with")
    files = {name for name in found.stdout.splitlines() if (ROOT / name).is_file()}
    assert files - names == set()
    assert {name for name in names if ".dist-info/" not in name} - files == set()


@pytest.mark.parametrize("package", ["planner", "profiles", "solvers"])
def test_every_package_is_typed(names: set[str], package: str) -> None:
    assert f"{package}/py.typed" in names


def test_it_holds_the_tables_the_examples_and_the_licences(names: set[str]) -> None:
    tables = {name.split("/")[-1] for name in names if name.startswith("profiles/tables/")}
    for system in ("a100", "b200", "h100", "h200", "l40s"):
        assert any(table.startswith(system) for table in tables), f"no table of {system}"
    assert "planner/papers/zellige/examples/default.json" in names
    licences = {Path(name).name for name in names if "dist-info/licenses/" in name}
    assert "LICENSE" in licences
    assert any("profiles/tables/LICENSE" in name for name in names), "the tables' own licence travels with them"


def test_the_examples_in_it_are_json(wheel: Path, names: set[str]) -> None:
    archive = zipfile.ZipFile(wheel)
    examples = sorted(name for name in names if "/examples/" in name and name.endswith(".json"))
    assert examples
    for name in examples:
        assert json.loads(archive.read(name))["paper"] == name.split("/")[2]


def test_its_command_is_plan(wheel: Path, names: set[str]) -> None:
    (entry,) = (name for name in names if name.endswith("entry_points.txt"))
    assert "plan = planner.cli:main" in zipfile.ZipFile(wheel).read(entry).decode()
