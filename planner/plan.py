"""The plan document, and the one way to make one: solve, check, wrap. No unchecked plan can exist."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, Field

from planner import __version__, papers
from planner.documents import Json, canonical_bytes, digest, parse_document
from planner.errors import BadInputError, InfeasibleError, RefutedError, Relaxation
from planner.fields import nearest
from planner.paper import Bound, Derivation, DeriveOptions, MemoryRow, Violation, Warned
from planner.papers import AnyPaper
from planner.validation import Document, Many, validate
from solvers.report import Limits, Report

FORMAT_VERSION = "1.0"
OPTIMAL_GAP = 1e-9
"""A relative gap at or below this counts as proved optimal."""
_RTOL = 1e-9


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


class Inputs(Document):
    """What the plan was made from, by digest."""

    problem_sha256: str
    derive: Json = None
    profile: str | None = None
    profile_sha256: str | None = None
    arrays: dict[str, str] = Field(default_factory=dict)


class MemoryEntry(Document):
    """Bytes of one cause in one place."""

    where: str
    cause: str
    bytes: float
    capacity_bytes: float


class WarningEntry(Document):
    """A stated caution."""

    code: str
    message: str


class Solver(Document):
    """What produced the plan, enough to produce it again."""

    engine: str
    version: str
    method: str
    seed: int
    effort: float


class Envelope(Document):
    """The plan file. ``problem`` and ``solution`` are validated by the paper's own models."""

    format_version: str
    paper: str
    planner: str
    inputs: Inputs
    problem: dict[str, Json]
    solution: dict[str, Json]
    certificate: Certificate
    memory: Many[MemoryEntry]
    warnings: Many[WarningEntry]
    sources: dict[str, float]
    cost_error: dict[str, float] | None
    solver: Solver


@dataclass(frozen=True)
class Plan:
    """A plan in memory: the paper, its typed problem and solution, and the envelope around them."""

    paper: AnyPaper
    problem: Any
    solution: Any
    inputs: Inputs
    certificate: Certificate
    memory: tuple[MemoryRow, ...]
    warnings: tuple[Warned, ...]
    sources: dict[str, float]
    cost_error: dict[str, float] | None
    solver: Solver
    planner: str = __version__

    def document(self) -> dict[str, Json]:
        """The plan file's content."""
        return {
            "format_version": FORMAT_VERSION,
            "paper": self.paper.name,
            "planner": self.planner,
            "inputs": self.inputs.model_dump(),
            "problem": dump_model(self.problem),
            "solution": dump_model(self.solution),
            "certificate": self.certificate.model_dump(exclude_none=True),
            "memory": [vars(row) for row in self.memory],
            "warnings": [vars(warned) for warned in self.warnings],
            "sources": self.sources,
            "cost_error": self.cost_error,
            "solver": self.solver.model_dump(),
        }

    def to_bytes(self) -> bytes:
        """Canonical bytes of the plan file."""
        return canonical_bytes(self.document())


def dump_model(model: BaseModel) -> dict[str, Json]:
    """A model as a document, without absent optional fields."""
    return model.model_dump(exclude_none=True)


@dataclass(frozen=True)
class Options:
    """How to solve. ``certify`` spends more on the bound; ``derive`` overrides parts of a derived problem."""

    method: str | None = None
    limits: Limits = field(default_factory=Limits)
    certify: bool = False
    derive: DeriveOptions = field(default_factory=DeriveOptions)


Timings = dict[str, float]


def check_version(document: dict[str, Json], what: str) -> None:
    """Accept any minor of our major. Raises BadInputError (unsupported_version) naming the version."""
    version = document.get("format_version", FORMAT_VERSION)
    major = version.split(".")[0] if isinstance(version, str) else None
    if major != FORMAT_VERSION.split(".")[0]:
        raise BadInputError(
            f"this {what} has format_version {version!r}; this planner reads {FORMAT_VERSION.split('.')[0]}.x",
            code="unsupported_version",
            where="format_version",
        )


def paper_of(document: Json) -> AnyPaper:
    """The paper a problem document names. Raises BadInputError."""
    if not isinstance(document, dict):
        raise BadInputError("expected a problem object", code="wrong_type")
    if "solution" in document and "problem" in document:
        raise BadInputError("this is a plan, not a problem", code="wrong_type")
    name = document.get("paper")
    if not isinstance(name, str):
        raise BadInputError(
            f'expected "paper" to name one of: {", ".join(papers.names())}',
            code="wrong_type" if "paper" in document else "missing_field",
            where="paper",
        )
    check_version(document, "problem")
    return papers.get(name)


@dataclass(frozen=True)
class Posed:
    """A validated explicit problem, and what it was derived from."""

    paper: AnyPaper
    problem: Any
    inputs: Inputs
    cost_error: dict[str, float] | None
    relaxable: Mapping[str, tuple[str, float]] = field(default_factory=dict)


def pose(document: Json, options: DeriveOptions) -> Posed:
    """Validate a problem document of either cost form and bring it to the explicit form. Raises BadInputError."""
    paper = paper_of(document)
    derivation: Derivation[Any] | None = None
    if "derive" in document:
        derivation = paper.derive(validate(paper.derived_model, document), options)
        problem = derivation.problem
    else:
        if options.profile is not None or options.extrapolate is not None:
            raise BadInputError(
                "--profile and --extrapolate need a derived problem; this one states its costs",
                code="unknown_field",
                where="derive",
            )
        problem = validate(paper.problem_model, document)
    problem = problem.sorted()
    return Posed(
        paper,
        problem,
        Inputs(
            problem_sha256=digest(dump_model(problem)),
            derive=derivation.derive if derivation else None,
            profile=derivation.profile if derivation else None,
            profile_sha256=derivation.profile_sha256 if derivation else None,
            arrays=dict(derivation.arrays) if derivation else {},
        ),
        dict(derivation.cost_error) if derivation and derivation.cost_error else None,
        derivation.relaxable if derivation else {},
    )


def make_plan(posed: Posed, options: Options, timings: Timings | None = None) -> Plan:
    """Solve, check, wrap. Raises InfeasibleError, LimitError, and RefutedError if our own check disagrees."""
    timings = {} if timings is None else timings
    paper, problem = posed.paper, posed.problem
    if options.method is not None and options.method not in paper.methods:
        raise BadInputError(
            f'{paper.name} has no method "{options.method}"{nearest(options.method, paper.methods)}; '
            f"known: {', '.join(paper.methods)}",
            code="out_of_range",
            where="--method",
        )
    try:
        solution, report = _timed(timings, "solve", lambda: paper.solve(problem, options.method, options.limits))
    except InfeasibleError as error:
        raise _in_terms_of_the_file(error, posed.relaxable) from None
    violations = _timed(timings, "check", lambda: paper.check(problem, solution))
    if violations:
        raise RefutedError(
            f"the {report.engine} engine made a plan that the check refutes; this is a bug",
            code=violations[0].code,
            violations=tuple(map(str, violations)),
        )
    bounds = _timed(
        timings, "certify", lambda: paper.bounds(problem, solution, options.certify, options.limits.effort)
    )
    return Plan(
        paper=paper,
        problem=problem,
        solution=solution,
        inputs=posed.inputs,
        certificate=certify(paper, paper.objective(solution), report, bounds),
        memory=tuple(paper.memory(problem, solution)),
        warnings=tuple(paper.warnings(problem, solution)),
        sources=dict(paper.shares(problem, solution)),
        cost_error=posed.cost_error,
        solver=Solver(
            engine=report.engine,
            version=report.version,
            method=report.method,
            seed=options.limits.seed,
            effort=options.limits.effort,
        ),
    )


def _in_terms_of_the_file(error: InfeasibleError, relaxable: Mapping[str, tuple[str, float]]) -> InfeasibleError:
    """The relaxation of a derived problem, on the field that its file has."""
    if error.relaxation is None or error.relaxation.field not in relaxable:
        return error
    name, larger = relaxable[error.relaxation.field]
    return InfeasibleError(
        error.message,
        code=error.code,
        where=name if error.where == error.relaxation.field else error.where,
        required=error.required,
        available=error.available,
        relaxation=Relaxation(name, error.relaxation.value + larger, error.relaxation.proven),
    )


def _timed(timings: Timings, name: str, act: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    try:
        return act()
    finally:
        timings[name] = time.perf_counter() - start


def certify(paper: AnyPaper, objective: float, report: Report, bounds: tuple[Bound, ...]) -> Certificate:
    """The certificate from the strongest bound at hand. A bound past the objective by rounding alone is cut to it.

    Raises RefutedError if a bound is past the objective by more: then one of the two is wrong.
    """
    sign = 1.0 if paper.sense == "min" else -1.0
    candidates = list(bounds)
    if report.bound is not None:
        candidates.append(Bound(report.bound, report.bound_kind or "solver", report.engine))
    best = max(candidates, key=lambda bound: sign * bound.value)
    value = best.value
    side = "lower_bound" if paper.sense == "min" else "upper_bound"
    if sign * (value - objective) > _RTOL * abs(objective):
        raise RefutedError(
            f"{best.name} proves {value!r}, past the objective {objective!r}; this is a bug",
            code=side,
            where=f"certificate.{side}",
        )
    gap = _relative_gap(objective, value, sign)
    if gap <= OPTIMAL_GAP:
        value, gap = objective, 0.0
    return Certificate.model_validate(
        {
            "status": "optimal" if gap == 0.0 else "feasible",
            "sense": paper.sense,
            "objective": objective,
            "unit": paper.unit,
            side: value,
            "bound_kind": best.kind,
            "gap": gap,
        }
    )


def _relative_gap(objective: float, bound: float, sign: float) -> float:
    """The distance over the bound, or over the objective where the bound is zero."""
    return 0.0 if objective == bound else sign * (objective - bound) / abs(bound or objective)


def load_plan(data: bytes, name: str) -> Plan:
    """Read a plan file. Raises BadInputError; says nothing yet about whether the plan is true."""
    return load_document(parse_document(data, name), name)


def load_document(document: Json, name: str) -> Plan:
    """A plan from its parsed document. Raises BadInputError."""
    if not isinstance(document, dict) or "solution" not in document:
        raise BadInputError(f"{name} is not a plan (no solution in it)", code="missing_field", where="solution")
    check_version(document, "plan")
    envelope = validate(Envelope, document)
    paper = papers.get(envelope.paper)
    check_version(envelope.problem, "problem")
    return Plan(
        paper=paper,
        problem=_part(paper.problem_model, envelope.problem, "problem").sorted(),
        solution=_part(paper.solution_model, envelope.solution, "solution"),
        inputs=envelope.inputs,
        certificate=envelope.certificate,
        memory=tuple(MemoryRow(**entry.model_dump()) for entry in envelope.memory),
        warnings=tuple(Warned(**entry.model_dump()) for entry in envelope.warnings),
        sources=envelope.sources,
        cost_error=envelope.cost_error,
        solver=envelope.solver,
        planner=envelope.planner,
    )


def _part(model: type[BaseModel], document: Json, name: str) -> Any:
    try:
        return validate(model, document)
    except BadInputError as error:
        where = f"{name}.{error.where}" if error.where else name
        raise BadInputError(error.message, code=error.code, where=where) from None


@dataclass(frozen=True)
class CheckReport:
    """What the check found: violations, the bounds it proved itself, and whether a stronger one is only claimed."""

    violations: tuple[Violation, ...]
    bounds: tuple[Bound, ...]
    claimed_bound: bool


def check_plan(plan: Plan) -> CheckReport:
    """Recompute feasibility, objective, metrics and every solver-free bound from the plan alone."""
    paper, problem, solution = plan.paper, plan.problem, plan.solution
    violations = list(paper.check(problem, solution))
    if plan.inputs.problem_sha256 != digest(dump_model(problem)):
        violations.append(Violation("problem_sha256", "the problem was changed after planning", "inputs"))
    if violations:
        return CheckReport(tuple(violations), (), False)
    bounds = paper.bounds(problem, solution, False, 1.0)
    violations += _check_certificate(plan, bounds)
    violations += _check_envelope(plan)
    sign = 1.0 if paper.sense == "min" else -1.0
    proved = max((sign * bound.value for bound in bounds), default=-math.inf)
    claimed = sign * plan.certificate.bound > proved * (1 + _RTOL * sign)
    return CheckReport(tuple(violations), bounds, claimed)


def require_true(plan: Plan) -> None:
    """Raise RefutedError, with the violations, unless the plan passes its check."""
    violations = check_plan(plan).violations
    if violations:
        raise RefutedError(
            f"{len(violations)} violation{'s' if len(violations) > 1 else ''}",
            code=violations[0].code,
            violations=tuple(map(str, violations)),
        )


def _check_certificate(plan: Plan, bounds: tuple[Bound, ...]) -> list[Violation]:
    stated, found = plan.certificate, []
    objective = plan.paper.objective(plan.solution)
    sign = 1.0 if plan.paper.sense == "min" else -1.0

    def differs(code: str, got: float, expected: float) -> None:
        if not math.isclose(got, expected, rel_tol=_RTOL, abs_tol=1e-12 if code == "gap" else 0.0):
            found.append(Violation(code, f"stated {got!r}, recomputed {expected!r}", f"certificate.{code}"))

    if stated.sense != plan.paper.sense or stated.unit != plan.paper.unit:
        found.append(Violation("unit", f"expected {plan.paper.sense} in {plan.paper.unit}", "certificate"))
        return found
    side = "lower_bound" if stated.sense == "min" else "upper_bound"
    if math.isnan(stated.bound):
        return [Violation(side, f"the certificate has no {side}", "certificate")]
    if stated.lower_bound is not None and stated.upper_bound is not None:
        found.append(Violation("unit", f"expected a {side} alone", "certificate"))
    differs("objective", stated.objective, objective)
    if sign * (stated.bound - objective) > _RTOL * abs(objective):
        message = f"bound {stated.bound!r} is past the objective {objective!r}"
        found.append(Violation(side, message, f"certificate.{side}"))
    for bound in bounds:
        if sign * (bound.value - objective) > _RTOL * abs(objective):
            found.append(Violation(side, f"{bound.name} proves {bound.value!r}, past the objective {objective!r}"))
    gap = _relative_gap(objective, stated.bound, sign)
    differs("gap", stated.gap, gap)
    expected = "optimal" if gap <= OPTIMAL_GAP else "feasible"
    if stated.status != expected:
        message = f"stated {stated.status}, the gap {gap:.3g} makes it {expected}"
        found.append(Violation("status", message, "certificate.status"))
    return found


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
        and math.isclose(a.bytes, b.bytes, rel_tol=_RTOL)
        and math.isclose(a.capacity_bytes, b.capacity_bytes, rel_tol=_RTOL)
        for a, b in zip(stated, expected, strict=True)
    )
