"""What derived prices say of themselves, without what measured runs have taken the place of."""

from __future__ import annotations

from collections.abc import Iterator

from planner.paper import Warned
from planner.papers.compass.problem import CompassProblem, Operator
from planner.papers.compass.warned.names import names


def prices_warned(problem: CompassProblem) -> Iterator[Warned]:
    """The problem's cautions; of composed tables, those that are left."""
    for code, text in (problem.cautions or {}).items():
        if code != "composed_table":
            yield Warned(code, text)
            continue
        tabled = [operator for operator in problem.operators if operator.inter_decom_table is not None]
        composed = [operator for operator in tabled if _is_composed(operator)]
        if composed:
            yield Warned(code, text if len(composed) == len(tabled) else f"{names(composed)}: {text}")


def _is_composed(operator: Operator) -> bool:
    return operator.table_sources is not None and operator.table_sources.modelled > 0
