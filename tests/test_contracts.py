"""The import contracts hold, and each is seen to fail once: a contract that cannot break protects nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("planner", "profiles", "solvers")


@dataclass(frozen=True)
class Import:
    """A forbidden import to inject, and the contract that must notice it."""

    contract: str
    file: str
    statement: str


PROFILES = "profiles knows neither planner nor solvers"
SOLVERS = "solvers knows neither planner nor profiles"
LAYERS = "the planner is layered"
SOLVER_FREE = "problem, cost and check of a paper reach no formulation and no solver"
PAPERS = "papers do not know each other"
COMPASS_CHECK = "the check of compass shares no code with its search"
LAYOUT_CHECK = "the check of layout shares no code with its search"
BIDIRL_CHECK = "the check of bidirl shares no code with its search"
MEMORY_CHECK = "the check of memory shares no code with its search"
JANUS_CHECK = "the check of janus shares no code with its search"
HIERMOE_CHECK = "the check of hiermoe shares no code with its search"
FINDEP_CHECK = "the check of findep shares no code with its search"

FORBIDDEN = [
    Import(PROFILES, "profiles/cluster.py", "import solvers.report"),
    Import(PROFILES, "profiles/errors.py", "import planner.errors"),
    Import(SOLVERS, "solvers/report.py", "import profiles.cluster"),
    Import(SOLVERS, "solvers/counting.py", "import planner.errors"),
    Import(LAYERS, "planner/plan.py", "import planner.difference"),
    Import(LAYERS, "planner/difference.py", "import planner.reports.terminal"),
    Import(LAYERS, "planner/runner/execute.py", "import planner.reports.run"),
    Import(LAYERS, "planner/program.py", "import planner.runner.rank"),
    Import(LAYERS, "planner/errors.py", "import planner.cli"),
    Import(LAYERS, "planner/papers/zellige/presentation.py", "import planner.console"),
    Import(LAYERS, "planner/a_module_without_a_layer.py", "import math"),
    Import(SOLVER_FREE, "planner/papers/zellige/check.py", "from ortools.sat.python import cp_model"),
    Import(SOLVER_FREE, "planner/papers/zellige/check_facts.py", "import planner.papers.zellige.formulation"),
    Import(SOLVER_FREE, "planner/papers/zellige/problem.py", "import solvers.cpsat"),
    Import(SOLVER_FREE, "planner/papers/zellige/cost.py", "import pulp"),
    Import(SOLVER_FREE, "planner/validation.py", "import highspy"),
    Import(LAYERS, "planner/derivation/clusters.py", "import planner.papers"),
    Import(HIERMOE_CHECK, "planner/papers/hiermoe/checks/table.py", "import planner.papers.hiermoe.exchange.time"),
    Import(FINDEP_CHECK, "planner/papers/findep/check_bound.py", "import planner.papers.findep.any_order"),
    Import(COMPASS_CHECK, "planner/papers/compass/checks/facts.py", "import planner.papers.compass.degrees"),
    Import(BIDIRL_CHECK, "planner/papers/bidirl/checks/splits.py", "import planner.papers.bidirl.objective"),
    Import(LAYOUT_CHECK, "planner/papers/layout/checks/graph.py", "import planner.papers.layout.replay"),
    Import(MEMORY_CHECK, "planner/papers/memory/checks/rules.py", "import planner.papers.memory.placements"),
    Import(JANUS_CHECK, "planner/papers/janus/checks/pools.py", "import planner.papers.janus.frontier"),
    Import(PAPERS, "planner/papers/second/__init__.py", "import planner.papers.zellige.problem"),
    Import(PAPERS, "planner/papers/second/cost.py", "from planner.papers.zellige.cost import derive"),
]


def broken(folder: Path) -> tuple[set[str], set[str]]:
    """The contracts that lint-imports finds kept and broken in a folder."""
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    verdicts = re.findall(r"^(.*) (KEPT|BROKEN)(?: \(\d+ ignored import\))?$", ran.stdout, re.MULTILINE)
    kept, failed = ({name for name, verdict in verdicts if verdict == word} for word in ("KEPT", "BROKEN"))
    assert kept | failed == set(contract_names()), ran.stdout + ran.stderr
    assert ran.returncode == (1 if failed else 0), ran.stdout + ran.stderr
    return kept, failed


def contract_names() -> list[str]:
    """The names in pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The three packages (code only) and the contracts, in a folder to spoil."""
    for package in PACKAGES:
        for source in (ROOT / package).rglob("*.py"):
            target = tmp_path / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold() -> None:
    assert broken(ROOT) == (set(contract_names()), set())


def test_every_contract_has_an_import_that_breaks_it() -> None:
    assert {forbidden.contract for forbidden in FORBIDDEN} == set(contract_names())


@pytest.mark.parametrize("forbidden", FORBIDDEN, ids=lambda forbidden: f"{forbidden.file}: {forbidden.statement}")
def test_a_forbidden_import_breaks_its_contract_and_no_other(copied: Path, forbidden: Import) -> None:
    file = copied / forbidden.file
    file.parent.mkdir(exist_ok=True)
    (file.parent / "__init__.py").touch()
    with file.open("a") as stream:
        stream.write(f"\n{forbidden.statement}\n")
    assert broken(copied)[1] == {forbidden.contract}
