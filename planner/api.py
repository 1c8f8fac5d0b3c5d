"""The library form of the commands. The command line uses nothing else."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path

from planner.beside import Beside
from planner.difference import Difference, compare
from planner.documents import read_document
from planner.files import read_bytes, write_atomically
from planner.json_text import Json
from planner.plan import Options, Plan, Timings, load_plan, make_plan, with_arrays
from planner.pose import pose
from planner.sensitivity import ask
from planner.sensitivity.answers import AtValue, OverRange
from planner.verification import CheckReport, check_plan

Location = str | PathLike[str]
"""The path of a file; ``-`` is a standard stream."""


def solve(problem: Json | Location, options: Options | None = None, timings: Timings | None = None) -> Plan:
    """Plan a problem: a document (dict), or the path of a JSON or YAML file, whose folder files it names are in.

    Raises BadInputError, InfeasibleError or LimitError (see ``planner.errors``). The plan returned has passed its
    independent check. ``timings`` receives wall-clock seconds per phase.
    """
    options = options or Options()
    if isinstance(problem, str | PathLike):
        problem = fspath(problem)
        document = read_document(problem)
        if problem != "-" and options.derive.base_folder == ".":
            options = replace(options, derive=replace(options.derive, base_folder=str(Path(problem).parent)))
    else:
        document = problem
    return make_plan(pose(document, options.derive), options, timings)


def check(plan: Plan | Location, data: Location | None = None) -> CheckReport:
    """Recompute what a plan says of its problem: feasibility, objective, metrics, memory, sources, bounds.

    What the problem was derived from (profile, model, link) is not in the plan, so it is not recomputed. ``data`` is
    the folder of the arrays that it names by digest. Raises BadInputError if they are missing or are others.
    """
    return check_plan(_loaded(plan, data))


def load(path: Location, data: Location | None = None) -> Plan:
    """Read a plan file (``-`` is standard input). Raises BadInputError.

    Arrays that its problem names by digest are read from the folder ``data``, by default that of the file; where they
    are missing, only what needs them fails.
    """
    path = fspath(path)
    folder = fspath(data) if data is not None else _folder_of(path)
    return load_plan(read_bytes(path), path, Beside(folder, base_names=True))


def dump(plan: Plan, path: Location) -> None:
    """Write a plan file whole or not at all (``-`` is standard output). Raises BadInputError."""
    write_atomically(fspath(path), plan.to_bytes())


def _folder_of(path: str) -> str:
    return "." if path == "-" else str(Path(path).parent)


def _loaded(plan: Plan | Location, data: Location | None) -> Plan:
    if not isinstance(plan, Plan):
        return load(plan, data)
    return plan if data is None else with_arrays(plan, Beside(fspath(data), base_names=True))


def _without_arrays(plan: Plan | Location) -> Plan:
    return plan if isinstance(plan, Plan) else load_plan(read_bytes(fspath(plan)), fspath(plan))


def diff(old: Plan | Location, new: Plan | Location, *, rtol: float = 1e-9) -> Difference:
    """What changed between two plans in inputs, decisions, metrics and certificate. Needs no arrays."""
    return compare(_without_arrays(old), _without_arrays(new), rtol=rtol)


def what_if(
    plan: Plan | Location, question: str, progress: ask.Progress | None = None, data: Location | None = None
) -> AtValue | OverRange:
    """How a plan's decision and objective follow a field of its problem, solved again at other values.

    ``question`` is ``PATH=VALUE`` (one value), ``PATH=±N`` or ``PATH=±X%`` (a range and where the decision changes);
    ±X% also scales the numbers of a list or the seconds of an object by one factor.
    A PATH below ``derive`` is of the derived form that the plan was made from: it is priced again at every value.
    ``progress`` is told the share that is done; ``data`` as for ``load``. Raises BadInputError, and RefutedError for a
    plan that is not true.
    """
    return ask.what_if(_loaded(plan, data), question, progress)
