"""Is a plan true? What it says of its problem is recomputed from problem and solution alone, without a solver."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.certificate import RTOL, Objective, check_certificate
from planner.documents import digest
from planner.envelope import dump_model
from planner.errors import RefutedError
from planner.paper import Bound, MemoryRow, Violation
from planner.plan import Plan


@dataclass(frozen=True)
class CheckReport:
    """What the check found: violations, the bounds it proved itself, and whether a stronger one is only claimed."""

    violations: tuple[Violation, ...]
    bounds: tuple[Bound, ...]
    claimed_bound: bool


def check_plan(plan: Plan) -> CheckReport:
    """Recompute feasibility, objective, metrics and every solver-free bound from the plan alone.

    Raises BadInputError if arrays that its problem names are missing or are others.
    """
    if plan.unread is not None:
        raise plan.unread
    paper, problem, solution = plan.paper, plan.problem, plan.solution
    violations = list(paper.check(problem, solution))
    if plan.inputs.problem_sha256 != digest(dump_model(problem)):
        violations.append(Violation("problem_sha256", "the problem was changed after planning", "inputs"))
    if violations:
        return CheckReport(tuple(violations), (), False)
    bounds = paper.bounds(problem, solution, False, 1.0)
    violations += check_certificate(plan.certificate, Objective.of(paper, problem, solution), bounds)
    violations += _check_envelope(plan)
    sign = 1.0 if paper.sense == "min" else -1.0
    proved = max((sign * bound.value for bound in bounds), default=-math.inf)
    claimed = sign * plan.certificate.bound > proved * (1 + RTOL * sign)
    return CheckReport(tuple(violations), bounds, claimed)


def require_true(plan: Plan) -> CheckReport:
    """The check's report. Raises RefutedError, with the violations, unless the plan passes."""
    report = check_plan(plan)
    violations = report.violations
    if violations:
        raise RefutedError(
            f"{len(violations)} violation{'s' if len(violations) > 1 else ''}",
            code=violations[0].code,
            violations=tuple(map(str, violations)),
        )
    return report


def _check_envelope(plan: Plan) -> list[Violation]:
    found = []
    expected_memory = plan.paper.memory(plan.problem, plan.solution)
    if not _rows_equal(plan.memory, expected_memory):
        found.append(Violation("memory", "the memory table differs from the recomputed one", "memory"))
    shares = plan.paper.shares(plan.problem, plan.solution)
    if set(shares) != set(plan.sources) or any(abs(shares[k] - plan.sources[k]) > 1e-9 for k in shares):
        found.append(Violation("sources", f"stated {plan.sources}, recomputed {dict(shares)}", "sources"))
    expected_codes = sorted(warned.code for warned in plan.paper.warnings(plan.problem, plan.solution))
    if sorted(warned.code for warned in plan.warnings) != expected_codes:
        found.append(Violation("warnings", f"expected the warnings {expected_codes}", "warnings"))
    return found


def _rows_equal(stated: tuple[MemoryRow, ...], expected: list[MemoryRow]) -> bool:
    if len(stated) != len(expected):
        return False
    return all(
        (a.where, a.cause) == (b.where, b.cause)
        and math.isclose(a.bytes, b.bytes, rel_tol=RTOL)
        and math.isclose(a.capacity_bytes, b.capacity_bytes, rel_tol=RTOL)
        for a, b in zip(stated, expected, strict=True)
    )
