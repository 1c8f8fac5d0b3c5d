"""What the reader of a plan should know before launching."""

from __future__ import annotations

from collections.abc import Iterator

from planner.paper import Warned
from planner.papers.compass.problem import CompassProblem, Operator
from planner.papers.compass.solution import CompassSolution
from planner.units import percent


def warnings(problem: CompassProblem, solution: CompassSolution) -> list[Warned]:
    """closed_form_unreliable, ring_by_chunks; first what the prices say themselves."""
    return [
        *(Warned(code, text) for code, text in sorted((problem.cautions or {}).items())),
        *_unreliable(problem),
        *_ring_by_chunks(problem, solution),
    ]


def _unreliable(problem: CompassProblem) -> Iterator[Warned]:
    doubted = [operator for operator in problem.operators if operator.fit is not None and not operator.fit.reliable]
    if doubted:
        yield Warned(
            "closed_form_unreliable",
            f"what was fitted to the runs of {_named(doubted)} is not to be believed ({_worst(doubted)}): "
            "where runs were measured their table decides; measure more degrees, or the sizes of your chunks",
        )


def _worst(doubted: list[Operator]) -> str:
    fits = [operator.fit for operator in doubted if operator.fit is not None]
    errors = [
        error
        for fit in fits
        for error in (fit.max_relative_error, fit.comm_relative_error, fit.gemm_relative_error)
        if error is not None
    ]
    regrets = [fit.regret for fit in fits if fit.regret is not None]
    parts = [f"errors up to {percent(max(errors))}"] if errors else []
    parts += [f"regret up to {percent(max(regrets))}"] if regrets else ["too few degrees"]
    return ", ".join(parts)


def _ring_by_chunks(problem: CompassProblem, solution: CompassSolution) -> Iterator[Warned]:
    """ring_exchange has no chunk that fills it, which equation 2 supposes (page, section 3.6)."""
    if problem.launcher_rules != "transformer_engine":
        return
    modelled = [
        operator
        for operator, choice in zip(problem.operators, solution.choices, strict=True)
        if operator.op == "ag_gemm" and choice.strategy == "inter_decom" and operator.inter_decom_table is None
    ]
    if modelled:
        yield Warned(
            "ring_by_chunks",
            f"{_named(modelled)} runs as a ring over its ranks, but is priced as chunks of a library collective: give "
            "inter_decom_table",
        )


def _named(operators: list[Operator]) -> str:
    first = ", ".join(operator.id for operator in operators[:3])
    return first if len(operators) <= 3 else f"{first} and {len(operators) - 3} more"
