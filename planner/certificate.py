"""How good a plan is, proved: the certificate, made from bounds and checked against them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from planner.errors import RefutedError
from planner.paper import Bound, Violation
from planner.papers import AnyPaper
from planner.validation import Document
from solvers.report import Report

OPTIMAL_GAP = 1e-9
"""A relative gap at or below this counts as proved optimal."""
RTOL = 1e-9
"""Relative difference that is put down to rounding."""


class Certificate(Document):
    """How good the plan is, proved. ``gap`` is relative to the bound; exactly one of the two bounds is given."""

    status: Literal["optimal", "feasible"]
    sense: Literal["min", "max"]
    objective: float
    unit: str
    lower_bound: float | None = None
    upper_bound: float | None = None
    bound_kind: Literal["exhaustive", "solver", "combinatorial", "fractional"]
    gap: float

    @property
    def bound(self) -> float:
        """The bound, whichever the sense."""
        bound = self.lower_bound if self.sense == "min" else self.upper_bound
        return math.nan if bound is None else bound


@dataclass(frozen=True)
class Objective:
    """What a plan reaches, whether less or more of it is better, and its unit."""

    value: float
    sense: str
    unit: str

    @classmethod
    def of(cls, paper: AnyPaper, problem: Any, solution: Any) -> Objective:
        """That of a paper's solution."""
        return cls(paper.objective(solution), paper.sense, paper.unit(problem))

    @property
    def sign(self) -> float:
        """1 where less is better, -1 where more is."""
        return 1.0 if self.sense == "min" else -1.0


def certify(objective: Objective, report: Report, bounds: tuple[Bound, ...]) -> Certificate:
    """The certificate from the strongest bound at hand, of those that are met an exhaustive one.

    A bound past the objective by rounding alone is cut to it.

    Raises RefutedError if a bound is past the objective by more: then one of the two is wrong.
    """
    reached, sign = objective.value, objective.sign
    candidates = list(bounds)
    if report.bound is not None:
        candidates.append(Bound(report.bound, report.bound_kind or "solver", report.engine))
    best = max(candidates, key=lambda bound: sign * bound.value)
    value = best.value
    side = "lower_bound" if objective.sense == "min" else "upper_bound"
    if sign * (value - reached) > RTOL * abs(reached):
        raise RefutedError(
            f"{best.name} proves {value!r}, past the objective {reached!r}; this is a bug",
            code=side,
            where=f"certificate.{side}",
        )
    gap = relative_gap(reached, value, sign)
    if gap <= OPTIMAL_GAP:
        value, gap = reached, 0.0
        # Of several bounds that are met rounding would choose: all of the search looked at says the most.
        best = next((bound for bound in candidates if bound.kind == "exhaustive" and _met(bound, reached, sign)), best)
    return Certificate.model_validate(
        {
            "status": "optimal" if gap == 0.0 else "feasible",
            "sense": objective.sense,
            "objective": reached,
            "unit": objective.unit,
            side: value,
            "bound_kind": best.kind,
            "gap": gap,
        }
    )


def _met(bound: Bound, objective: float, sign: float) -> bool:
    return relative_gap(objective, bound.value, sign) <= OPTIMAL_GAP


def relative_gap(objective: float, bound: float, sign: float) -> float:
    """The distance over the bound, or over the objective where the bound is zero."""
    return 0.0 if objective == bound else sign * (objective - bound) / abs(bound or objective)


def check_certificate(stated: Certificate, objective: Objective, bounds: tuple[Bound, ...]) -> list[Violation]:
    """What a stated certificate gets wrong, given the recomputed objective and the bounds proved again."""
    found: list[Violation] = []
    reached, sign = objective.value, objective.sign

    def differs(code: str, got: float, expected: float) -> None:
        if not math.isclose(got, expected, rel_tol=RTOL, abs_tol=1e-12 if code == "gap" else 0.0):
            found.append(Violation(code, f"stated {got!r}, recomputed {expected!r}", f"certificate.{code}"))

    if stated.sense != objective.sense or stated.unit != objective.unit:
        found.append(Violation("unit", f"expected {objective.sense} in {objective.unit}", "certificate"))
        return found
    side = "lower_bound" if stated.sense == "min" else "upper_bound"
    if math.isnan(stated.bound):
        return [Violation(side, f"the certificate has no {side}", "certificate")]
    if stated.lower_bound is not None and stated.upper_bound is not None:
        found.append(Violation("unit", f"expected a {side} alone", "certificate"))
    differs("objective", stated.objective, reached)
    if sign * (stated.bound - reached) > RTOL * abs(reached):
        message = f"bound {stated.bound!r} is past the objective {reached!r}"
        found.append(Violation(side, message, f"certificate.{side}"))
    for bound in bounds:
        if sign * (bound.value - reached) > RTOL * abs(reached):
            found.append(Violation(side, f"{bound.name} proves {bound.value!r}, past the objective {reached!r}"))
        if bound.attained and sign * (stated.bound - bound.value) > RTOL * abs(bound.value):
            message = f"stated {stated.bound!r}, but {bound.name} reaches {bound.value!r}"
            found.append(Violation(side, message, f"certificate.{side}"))
    gap = relative_gap(reached, stated.bound, sign)
    differs("gap", stated.gap, gap)
    expected = "optimal" if gap <= OPTIMAL_GAP else "feasible"
    if stated.status != expected:
        message = f"stated {stated.status}, the gap {gap:.3g} makes it {expected}"
        found.append(Violation("status", message, "certificate.status"))
    return found
