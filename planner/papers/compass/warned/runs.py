"""What measured runs leave open: fits that do not hold, measured beside modelled, degrees that nothing can start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.paper import Warned
from planner.papers.compass.calls import Call
from planner.papers.compass.degrees import launched_degrees
from planner.papers.compass.problem import CompassProblem, Operator, Rules
from planner.papers.compass.runs.document import ENOUGH_DEGREES, ENOUGH_SPAN, WELL_CHOSEN, WELL_FITTED, Fit
from planner.papers.compass.warned.names import either, names
from planner.units import percent, seconds

LONG_CALL_S = 10.0
"""No GEMM of a layer takes so long: a file in milliseconds or microseconds most likely."""


def runs_warned(problem: CompassProblem, made: Sequence[Call]) -> Iterator[Warned]:
    """times_too_long, sequential_not_measured, chunks_not_measured, degrees_not_started, closed_form_unreliable."""
    measured = [call for call in made if call.operator.fit is not None or _is_measured(call.operator)]
    rules = problem.launcher_rules
    yield from _too_long(measured)
    yield from _sequential_not_measured([call.operator for call in measured])
    yield from _chunks_not_measured(measured)
    if rules != "none":
        yield from _not_started([call.operator for call in made], rules)
    yield from _unreliable([call.operator for call in measured], rules)


def _is_measured(operator: Operator) -> bool:
    """Whether a run of degree 1 may be its time in sequence; rows of its stages alone may look the same."""
    sources = operator.sequential_sources
    return operator.sequential_time_s is not None and sources is not None and sources.measured == 1


def _too_long(measured: Sequence[Call]) -> Iterator[Warned]:
    long = [call for call in measured if call.choice.time_s > LONG_CALL_S]
    if long:
        took = seconds(long[0].choice.time_s)
        yield Warned(
            "times_too_long",
            f"one call of {names([call.operator for call in long])} takes {took} by its runs: are they in seconds?",
        )


def _sequential_not_measured(measured: Sequence[Operator]) -> Iterator[Warned]:
    modelled = [operator for operator in measured if operator.fit is not None and operator.fit.sequential == "modelled"]
    if modelled:
        yield Warned(
            "sequential_not_measured",
            f"{names(modelled)}: chunks were measured, the time in sequence is modelled, and one was compared with the "
            "other; add a run of degree 1",
        )


def _chunks_not_measured(measured: Sequence[Call]) -> Iterator[Warned]:
    mixed = [
        call.operator
        for call in measured
        if _is_measured(call.operator)
        and call.operator.inter_decom_table is None
        and (
            call.choice.strategy == "inter_decom"
            or (call.choice.runner_up is not None and call.choice.runner_up.strategy == "inter_decom")
        )
    ]
    if mixed:
        yield Warned(
            "chunks_not_measured",
            f"{names(mixed)}: the time in sequence was measured, chunks are modelled, and one was compared with the "
            "other; add runs of higher degrees",
        )


def _not_started(operators: Sequence[Operator], rules: Rules) -> Iterator[Warned]:
    """Degrees of a table that decide nothing."""
    said, more = "", 0
    for operator in operators:
        table, startable = operator.inter_decom_table, launched_degrees(operator, rules)
        idle = [point.degree for point in table or () if point.degree not in startable]
        if not idle or "inter_decom" not in operator.allowed_strategies:
            continue
        if said:
            more += 1
            continue
        can = f"it takes {either(startable)}" if startable else "it takes none"
        said = f"{operator.id}: {rules} cannot start it in {either(idle)} chunks, as its times are for ({can})"
    if said:
        yield Warned("degrees_not_started", said + (f"; likewise {more} more" if more else ""))


def _unreliable(measured: Sequence[Operator], rules: Rules) -> Iterator[Warned]:
    doubted = {
        operator.id: reasons
        for operator in measured
        if operator.fit is not None
        and not operator.fit.reliable
        and (reasons := _reasons(operator, operator.fit, rules))
    }
    if doubted:
        worst = [max(values) for values in zip(*doubted.values(), strict=True)]
        parts = [f"errors up to {percent(worst[0])}"] if worst[0] > WELL_FITTED else []
        parts += [f"regret up to {percent(worst[1])}"] if worst[1] > WELL_CHOSEN else []
        few = f"runs at fewer than {ENOUGH_DEGREES} degrees, or all within {ENOUGH_SPAN} times"
        parts += [few] if worst[2] else []
        of = [operator for operator in measured if operator.id in doubted]
        yield Warned(
            "closed_form_unreliable",
            f"what was fitted to the runs of {names(of)} is not to be believed ({', '.join(parts)}): "
            "where runs were measured their table decides; measure more degrees, or the sizes of your chunks",
        )


def _reasons(operator: Operator, fit: Fit, rules: Rules) -> tuple[float, float, bool] | None:
    """The largest error, the regret, and whether degrees are too few; None where none of them is a reason.

    Where no more degrees can be started than would still be too few, nobody can measure more of them.
    """
    errors = (fit.max_relative_error, fit.comm_relative_error, fit.gemm_relative_error)
    error, regret = max((each for each in errors if each is not None), default=0.0), fit.regret or 0.0
    degrees = [point.degree for point in operator.inter_decom_table or ()] if fit.table_degree is not None else []
    few = bool(degrees) and _are_few(degrees) and not _are_few(launched_degrees(operator, rules))
    return (error, regret, few) if error > WELL_FITTED or regret > WELL_CHOSEN or few else None


def _are_few(degrees: Sequence[int]) -> bool:
    """Too few for a fit, or too near to each other."""
    return len(degrees) < ENOUGH_DEGREES or max(degrees) < ENOUGH_SPAN * min(degrees)
