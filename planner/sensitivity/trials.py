"""A plan's problem solved again, as it is and with quantities moved."""

from __future__ import annotations

from collections.abc import Mapping

from planner import __version__
from planner.difference import changes_of, count_parts
from planner.errors import BadInputError, InfeasibleError, LimitError
from planner.json_text import Json
from planner.plan import Options, Plan, make_plan
from planner.sensitivity.answers import Again, Outcome, Point
from planner.sensitivity.movement import Number
from planner.sensitivity.quantities import Quantities
from planner.sensitivity.source import Source
from solvers.report import Limits

MAX_SOLVES = 100
"""Of one question; the switching values nearest to the field's own are located first."""

_RTOL = 1e-9
"""Figures of two plans that differ by less are the same."""
_Verdict = tuple[str, str, Mapping[str, Json] | None]


def solve_again(plan: Plan, source: Source) -> tuple[Options, Plan, Again]:
    """How the plan's own problem is solved, what that gives, and how it differs from the plan.

    A plan names the method that made it, not whether that was asked for: where the choice was the paper's, it may have
    spent less on it. That choice is tried first, and taken if it gives the plan.
    """
    seed, effort = plan.solver.seed, plan.solver.effort
    if not (0 <= seed < 2**31 and 0.001 <= effort <= 10_000):
        message = f"expected a seed of 31 bits and an effort of 0.001 to 10000, got {seed} and {effort:g}"
        raise BadInputError(message, code="out_of_range", where="solver")
    posed = source.posed
    options = Options(limits=Limits(seed=seed, effort=effort))
    base = make_plan(posed, options)
    if not _gives(base, plan) and plan.solver.method in plan.paper.methods:
        options = Options(method=plan.solver.method, limits=options.limits)
        base = make_plan(posed, options)
    same_solver = (plan.solver.engine, plan.solver.version) == (base.solver.engine, base.solver.version)
    return (
        options,
        base,
        Again(
            outcome=compare(base, plan),
            objective=base.certificate.objective,
            paper=base.paper.name,
            parts=count_parts(_decisions(base)),
            other=source.other,
            planner=None if plan.planner == __version__ else plan.planner,
            version=None if same_solver else f"{plan.solver.engine} {plan.solver.version}",
        ),
    )


def _gives(base: Plan, plan: Plan) -> bool:
    same = _decisions(base) == _decisions(plan) and base.solver.method == plan.solver.method
    return same and (base.certificate.status, plan.certificate.status) != ("feasible", "optimal")


def solve_changed(
    source: Source, document: Json, options: Options, base: Plan
) -> tuple[Outcome, Mapping[str, Json] | None]:
    """What a problem gives, compared with ``base``, and its decisions, None where there is no plan."""
    try:
        made = make_plan(source.pose(document), options)
    except (BadInputError, InfeasibleError, LimitError) as error:
        return Outcome(error=error), None
    return compare(made, base), _decisions(made)


def compare(made: Plan, other: Plan) -> Outcome:
    """A plan, and its decisions, metrics and warnings that are not those of the other."""
    known = {warned.code for warned in other.warnings}
    before, after = (dict(plan.paper.metrics(plan.solution)) for plan in (other, made))
    return Outcome(
        objective=made.certificate.objective,
        unit=made.certificate.unit,
        gap=made.certificate.gap,
        method=made.solver.method,
        changes=tuple(changes_of("decisions", _decisions(other), _decisions(made))),
        metrics=tuple(changes_of("metrics", before, after, _RTOL)),
        warnings=tuple(warned for warned in made.warnings if warned.code not in known),
    )


def _decisions(plan: Plan) -> dict[str, Json]:
    return dict(plan.paper.decisions(plan.solution))


class Trials:
    """The values solved so far, the plan's own first, and the different decisions found.

    ``quantities`` are those of ``document``, which is one of ``source`` and changes with each value.
    """

    def __init__(self, source: Source, document: Json, quantities: Quantities, options: Options, base: Plan) -> None:
        start = quantities.start
        self.points: dict[Number, Point] = {start: Point(start, 0, compare(base, base))}
        self.stopped = False
        self._source = source
        self._document = document
        self._quantities = quantities
        self._options = options
        self._base = base
        self._verdicts: list[_Verdict] = [("plan", "", _decisions(base))]

    def at(self, value: Number) -> Point:
        """What is decided at a value, solved at most once."""
        if value not in self.points:
            self._quantities.move(value)
            outcome, decisions = solve_changed(self._source, self._document, self._options, self._base)
            error = outcome.error
            verdict = ("plan", "", decisions) if error is None else (error.kind, error.code, decisions)
            if verdict not in self._verdicts:
                self._verdicts.append(verdict)
            self.points[value] = Point(value, self._verdicts.index(verdict), outcome)
        return self.points[value]

    def within_budget(self) -> bool:
        """Whether one more may be solved; ``stopped`` tells afterwards that one might not."""
        self.stopped = self.stopped or len(self.points) >= MAX_SOLVES
        return not self.stopped
