"""Measured runs of a derived problem's operators: they stand where the profile's prices of them would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planner.beside import Beside
from planner.errors import BadInputError
from planner.fields import nearest
from planner.paper import Attached
from planner.papers.compass.costs.stages import Stages
from planner.papers.compass.derived import Derive
from planner.papers.compass.problem import CompassProblem, Operator
from planner.papers.compass.runs.attach import attach
from planner.papers.compass.runs.document import Stages as Sweeps
from planner.papers.compass.runs.units import refuse_far_stages

FIELDS = ("runs", "stages")


def refuse_unknown(given: Derive, stages: Sequence[Stages]) -> None:
    """Raises BadInputError where runs are of an operator that there is not."""
    known = sorted(part.pair.id for part in stages)
    for field, measured in (("runs", set(given.runs)), ("stages", set(given.stages))):
        for name in sorted(measured - set(known)):
            message = f'no operator "{name[:80]}"{nearest(name, known)}: there are {", ".join(known)}'
            raise BadInputError(message, code="unknown_field", where=f"derive.{field}.{name}")


def named(given: Derive, part: Stages, operator: Operator) -> Operator:
    """The operator with its files in place of what they measure: runs of its table, sweeps of all its prices."""
    runs, sweeps = given.runs.get(operator.id), given.stages.get(operator.id)
    changes: dict[str, object] = {}
    if runs is not None or sweeps is not None:
        changes |= {"runs": runs, "inter_decom_table": None, "table_sources": None}
    if sweeps is not None:
        changes |= {"comm": None, "gemm": None, "sequential_time_s": None, "sequential_sources": None}
        changes["stages"] = Sweeps(
            path=sweeps.path,
            comm_bytes=sweeps.comm_bytes or part.pair.message_bytes,
            gemm_rows=sweeps.gemm_rows or float(part.pair.m),
        )
    return operator.model_copy(update=changes)


def read(problem: CompassProblem, folder: Path) -> Attached[CompassProblem]:
    """The problem with its files read. Raises BadInputError, with the place that the derived form has."""
    try:
        return attach(problem, Beside(str(folder)))
    except BadInputError as error:
        where = error.where
        if where is not None and where.startswith("operators."):
            name, _, field = where.removeprefix("operators.").rpartition(".")
            kinds = [kind for kind in FIELDS if name.endswith(f".{kind}")]
            if kinds and field == "path":
                where = f"derive.{kinds[0]}.{name.removesuffix(f'.{kinds[0]}')}.path"
        raise BadInputError(error.message, code=error.code, where=where) from None


def refuse_other_unit(given: Derive, stages: Sequence[Stages], read_: CompassProblem) -> None:
    """Raises BadInputError where sweeps are in no relation to the profile's price of their operator.

    ``read_`` is the problem with its files read: the prices that sweeps replaced are in ``stages`` alone.
    """
    priced_s = {part.pair.id: part.sequential_s for part in stages}
    for operator in read_.operators:
        if operator.id in given.stages:
            name, where = Path(given.stages[operator.id].path).name, f"derive.stages.{operator.id}.path"
            refuse_far_stages(operator, priced_s[operator.id], name, where)


def names_only(document: dict[str, object]) -> None:
    """Keep of the files' paths their base names."""
    for field in FIELDS:
        for entry in _entries(document, field):
            entry["path"] = Path(str(entry["path"])).name
        if not document.get(field):
            document.pop(field, None)


def _entries(document: dict[str, object], field: str) -> list[dict[str, object]]:
    held = document.get(field)
    return [entry for entry in held.values() if isinstance(entry, dict)] if isinstance(held, dict) else []
