"""The plan, and the one way to make one: solve, check, wrap. No unchecked plan can exist."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from planner import __version__, papers
from planner.beside import Beside
from planner.certificate import Certificate, Objective, certify
from planner.documents import canonical_bytes, parse_document
from planner.envelope import FORMAT_VERSION, Envelope, Inputs, Solver, check_version, dump_model
from planner.errors import BadInputError, InfeasibleError, RefutedError, Relaxation
from planner.fields import nearest
from planner.json_text import Json
from planner.paper import DeriveOptions, MemoryRow, Warned
from planner.papers import AnyPaper
from planner.pose import Posed
from planner.validation import validate
from solvers.report import Limits


@dataclass(frozen=True)
class Plan:
    """A plan in memory: the paper, its typed problem and solution, and the envelope around them.

    ``beside`` is where the files that the problem names were looked for, ``unread`` why they could not be used.
    """

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
    beside: Beside | None = field(default=None, compare=False)
    unread: BadInputError | None = field(default=None, compare=False)

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


@dataclass(frozen=True)
class Options:
    """How to solve. ``certify`` spends more on the bound; ``derive`` overrides parts of a derived problem."""

    method: str | None = None
    limits: Limits = field(default_factory=Limits)
    certify: bool = False
    derive: DeriveOptions = field(default_factory=DeriveOptions)


Timings = dict[str, float]


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
        raise _in_terms_of_the_file(error, posed) from None
    violations = _timed(timings, "check", lambda: paper.check(problem, solution))
    if violations:
        raise RefutedError(
            f"the {report.engine} engine made a plan that the check refutes; this is a bug",
            code=violations[0].code,
            violations=tuple(map(str, violations)),
        )
    bounds = _timed(timings, "certify", lambda: paper.bounds(problem, solution, options.certify, options.limits.effort))
    return Plan(
        paper=paper,
        problem=problem,
        solution=solution,
        inputs=posed.inputs,
        certificate=certify(Objective.of(paper, problem, solution), report, bounds),
        memory=tuple(paper.memory(problem, solution)),
        warnings=tuple(paper.warnings(problem, solution)),
        # Shares are sums, which rounding may leave above all there is.
        sources={name: min(1.0, share) for name, share in paper.shares(problem, solution).items()},
        cost_error=posed.cost_error,
        solver=Solver(
            engine=report.engine,
            version=report.version,
            method=report.method,
            seed=options.limits.seed,
            effort=options.limits.effort,
        ),
        beside=posed.beside,
    )


def _in_terms_of_the_file(error: InfeasibleError, posed: Posed) -> InfeasibleError:
    """The relaxation of a derived problem, on the field that its file has; another where the file has one for that."""
    message, where, relaxation = error.message, error.where, error.relaxation
    for written, (name, _) in posed.relaxable.items():
        message = message.replace(f"--set {written}=", f"--set {name}=")
    for each in (relaxation, *error.also):
        if each is not None and each.field in posed.relaxable:
            name, moved = posed.relaxable[each.field]
            always = isinstance(moved, str)
            where = name if relaxation is not None and where in (each.field, relaxation.field) else where
            relaxation = replace(
                each,
                field=name,
                value=_moved(each, posed),
                proven=each.proven or always,
                enough=each.enough or always,
            )
            break
    return InfeasibleError(
        message,
        code=error.code,
        where=where,
        required=error.required,
        available=error.available,
        unit=error.unit,
        relaxation=relaxation,
    )


def _moved(relaxation: Relaxation, posed: Posed) -> float | str:
    """The value of the file's field that a relaxation comes to."""
    name, larger = posed.relaxable[relaxation.field]
    if isinstance(larger, str):
        return larger
    if isinstance(relaxation.value, str):
        return relaxation.value
    multiple = posed.multiples.get(name)
    value = relaxation.value + larger
    return value if multiple is None else math.ceil(value / multiple) * multiple


def _timed(timings: Timings, name: str, act: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    try:
        return act()
    finally:
        timings[name] = time.perf_counter() - start


def load_plan(data: bytes, name: str, beside: Beside | None = None) -> Plan:
    """Read a plan file. Raises BadInputError; says nothing yet about whether the plan is true."""
    return load_document(parse_document(data, name), name, beside)


def load_document(document: Json, name: str, beside: Beside | None = None) -> Plan:
    """A plan from its parsed document, with the arrays that its problem names if ``beside`` has them.

    Raises BadInputError.
    """
    if not isinstance(document, dict) or "solution" not in document:
        raise BadInputError(f"{name} is not a plan (no solution in it)", code="missing_field", where="solution")
    check_version(document, "plan")
    envelope = validate(Envelope, document)
    paper = papers.get(envelope.paper)
    check_version(envelope.problem, "problem")
    plan = Plan(
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
    return plan if beside is None else with_arrays(plan, beside)


def with_arrays(plan: Plan, beside: Beside) -> Plan:
    """The plan with the arrays that its problem names, or with the reason why they cannot be used in ``unread``."""
    if plan.paper.attach is None:
        return replace(plan, beside=beside)
    try:
        attached = plan.paper.attach(plan.problem, beside)
    except BadInputError as error:
        return replace(plan, beside=beside, unread=error)
    unnamed = [name for name, digest in attached.files.items() if plan.inputs.arrays.get(name) != digest]
    unread = None
    if unnamed:
        message = f"the plan's inputs do not name {unnamed[0]} by its digest, as its problem does"
        unread = BadInputError(message, code="array_mismatch", where=f"inputs.arrays.{unnamed[0]}")
    return replace(plan, problem=attached.problem, beside=beside, unread=unread)


def _part(model: type[BaseModel], document: Json, name: str) -> Any:
    try:
        return validate(model, document)
    except BadInputError as error:
        where = f"{name}.{error.where}" if error.where else name
        raise BadInputError(error.message, code=error.code, where=where) from None
