"""The library form of the commands. The command line uses nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from planner.difference import Difference, compare
from planner.documents import read_document
from planner.files import read_bytes, write_atomically
from planner.json_text import Json
from planner.plan import Options, Plan, Timings, load_plan, make_plan
from planner.pose import pose
from planner.verification import CheckReport, check_plan


def solve(problem: Json | str, options: Options | None = None, timings: Timings | None = None) -> Plan:
    """Plan a problem: a document (dict), or the path of a JSON or YAML file, whose folder files it names are in.

    Raises BadInputError, InfeasibleError or LimitError (see ``planner.errors``). The plan returned has passed its
    independent check. ``timings`` receives wall-clock seconds per phase.
    """
    options = options or Options()
    if isinstance(problem, str):
        document = read_document(problem)
        if problem != "-" and options.derive.base_folder == ".":
            options = replace(options, derive=replace(options.derive, base_folder=str(Path(problem).parent)))
    else:
        document = problem
    return make_plan(pose(document, options.derive), options, timings)


def check(plan: Plan | str) -> CheckReport:
    """Recompute everything a plan says, without a solver."""
    return check_plan(load(plan) if isinstance(plan, str) else plan)


def load(path: str) -> Plan:
    """Read a plan file (``-`` is standard input). Raises BadInputError."""
    return load_plan(read_bytes(path), path)


def dump(plan: Plan, path: str) -> None:
    """Write a plan file whole or not at all (``-`` is standard output). Raises BadInputError."""
    write_atomically(path, plan.to_bytes())


def diff(old: Plan | str, new: Plan | str, *, rtol: float = 1e-9) -> Difference:
    """What changed between two plans in inputs, decisions, metrics and certificate."""
    return compare(load(old) if isinstance(old, str) else old, load(new) if isinstance(new, str) else new, rtol=rtol)
