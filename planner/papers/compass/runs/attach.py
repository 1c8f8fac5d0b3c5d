"""What a problem names by file, read into it: runs become tables, sweeps become stages, how well they fit is kept."""

from __future__ import annotations

from statistics import median

from planner.attribution import Sources
from planner.beside import Beside, Found, add_digest, find
from planner.errors import BadInputError
from planner.paper import Attached
from planner.papers.compass.problem import CompassProblem, Contention, Operator, Point
from planner.papers.compass.runs.document import Fit, Sequential
from planner.papers.compass.runs.files import read_runs, read_stages
from planner.papers.compass.runs.fitting import Curves, believed, fit_contention, fit_curves, fit_line
from planner.papers.compass.runs.units import refuse_other_unit, refuse_slower
from planner.validation import validate

WELL_LINED = 0.05
"""Largest relative error of a line that is believed."""
MEASURED = Sources(measured=1.0)


def attach(problem: CompassProblem, beside: Beside) -> Attached[CompassProblem]:
    """The problem without paths: everything that files state is written out.

    Raises BadInputError: a file that is missing, is not what it should be, or does not fit its operator.
    """
    files: dict[str, str] = {}
    operators = [_with_runs(_with_stages(operator, beside, files), beside, files) for operator in problem.operators]
    if not files:
        return Attached(problem, files)
    written = {name: getattr(problem, name) for name in problem.model_fields_set}
    return Attached(validate(CompassProblem, written | {"operators": tuple(operators)}), files)


def _with_stages(operator: Operator, beside: Beside, files: dict[str, str]) -> Operator:
    """``comm`` and ``gemm`` from sweeps of each."""
    if operator.stages is None:
        return operator
    found, where = _found(operator, "stages", operator.stages.path, beside, files)
    runs = read_stages(found.path, where)
    comm, gemm = (fit_line(*zip(*runs[stage], strict=True)) for stage in ("comm", "gemm"))
    errors = (comm.max_relative_error, gemm.max_relative_error)
    fit = Fit(comm_relative_error=errors[0], gemm_relative_error=errors[1], reliable=max(errors) <= WELL_LINED)
    changes: dict[str, object] = {
        "comm": comm.stage(operator.stages.comm_bytes),
        "gemm": gemm.stage(operator.stages.gemm_rows),
        "stages": None,
        "fit": fit,
    }
    if operator.sequential_time_s is not None and not _is_stated(operator):
        changes |= {"sequential_time_s": None, "sequential_sources": None}
    return _changed(operator, changes)


def _with_runs(operator: Operator, beside: Beside, files: dict[str, str]) -> Operator:
    """The table from runs of the operator, with the slow-downs they show where none are stated."""
    if operator.runs is None:
        return operator
    found, where = _found(operator, "runs", operator.runs.path, beside, files)
    by_degree: dict[int, list[float]] = {}
    for line, degree, time_s in read_runs(found.path, where):
        if degree != 1 and not operator.is_legal(degree):
            message = f"{found.name} line {line}: expected 1 or {operator.legal_degrees_said()}, got {degree}"
            raise BadInputError(message, code="illegal_degree", where=where)
        by_degree.setdefault(degree, []).append(time_s)
    times = {degree: float(median(each)) for degree, each in sorted(by_degree.items())}
    refuse_other_unit(operator, times, found.name, where)
    changes: dict[str, object] = {"runs": None}
    alone_s, stated = times.pop(1, None), _is_stated(operator)
    if alone_s is None and operator.sequential_time_s is None and operator.comm is None:
        message = (
            f"{found.name} holds no run of degree 1, which is the time in sequence, and the operator has neither "
            '"sequential_time_s" nor "comm" with "gemm"'
        )
        raise BadInputError(message, code="missing_field", where=where)
    if alone_s is not None and not stated:
        changes["sequential_time_s"] = alone_s
        changes["sequential_sources"] = MEASURED
    if times:
        degrees, seconds = list(times), list(times.values())
        changes["inter_decom_table"] = tuple(Point(degree=d, time_s=time_s) for d, time_s in times.items())
        changes["table_sources"] = MEASURED
        sequential: Sequential = "stated" if stated else "modelled" if alone_s is None else "measured"
        changes["fit"] = _fit(operator.fit, fit_curves(degrees, seconds), times, sequential)
        if operator.comm is not None and operator.gemm is not None and operator.contention == Contention():
            slower = fit_contention(operator.comm, operator.gemm, degrees, seconds)
            refuse_slower(slower, found.name, where)
            changes["contention"] = Contention(comm=slower.comm, gemm=slower.gemm)
    return _changed(operator, changes)


def _is_stated(operator: Operator) -> bool:
    """Whether its time in sequence is somebody's word; one composed from rows has sources, none of them stated."""
    sources = operator.sequential_sources
    return operator.sequential_time_s is not None and (sources is None or sources.stated > 0)


def _fit(before: Fit | None, curves: Curves | None, times: dict[int, float], sequential: Sequential) -> Fit:
    """How the curves stand to the runs, beside what the sweeps' lines said."""
    table_degree = min(times, key=lambda d: (times[d], d))
    fit_degree = None if curves is None else min(times, key=lambda d: (curves.at(d), d))
    regret = None if fit_degree is None else times[fit_degree] / times[table_degree] - 1
    reliable = believed(curves, list(times), regret) and (before is None or before.reliable)
    return Fit(
        curves=() if curves is None else curves.curves,
        max_relative_error=None if curves is None else curves.max_relative_error,
        fit_degree=fit_degree,
        table_degree=table_degree,
        regret=regret,
        comm_relative_error=None if before is None else before.comm_relative_error,
        gemm_relative_error=None if before is None else before.gemm_relative_error,
        sequential=sequential,
        reliable=reliable,
    )


def _changed(operator: Operator, changes: dict[str, object]) -> Operator:
    """The operator with some fields replaced, validated again. Raises BadInputError."""
    kept = {name: getattr(operator, name) for name in operator.model_fields_set} | changes
    try:
        return validate(Operator, kept)
    except BadInputError as error:
        where = f"operators.{operator.id}" + (f".{error.where}" if error.where else "")
        raise BadInputError(error.message, code=error.code, where=where) from None


def _found(operator: Operator, field: str, path: str, beside: Beside, files: dict[str, str]) -> tuple[Found, str]:
    where = f"operators.{operator.id}.{field}.path"
    found = find(beside, path, None, where)
    add_digest(files, found.name, found.sha256, where)
    return found, where
