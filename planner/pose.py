"""From a problem document of either cost form to a validated explicit problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner import papers
from planner.beside import Beside, add_digest
from planner.documents import digest
from planner.envelope import Inputs, check_version, dump_model
from planner.errors import BadInputError
from planner.json_text import Json
from planner.paper import Derivation, DeriveOptions
from planner.papers import AnyPaper
from planner.validation import form_of, validate


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


def _derived(paper: AnyPaper, document: Json) -> Any:
    """A derived document, validated. Raises BadInputError; of a field of the explicit form it says where that is."""
    try:
        return validate(paper.derived_model, document)
    except BadInputError as error:
        name = error.where
        if error.code != "unknown_field" or name is None or not isinstance(document, dict):
            raise
        if name not in form_of(paper.problem_model, document).model_fields:
            raise
        derive = form_of(paper.derived_model, document).model_fields["derive"].annotation
        takes = f"derive.{name}" if name in getattr(derive, "model_fields", {}) else "derive"
        message = (
            f'unknown field "{name}" of a derived problem: {takes} replaces it; plan expand prints the explicit form, '
            "where it can be set"
        )
        raise BadInputError(message, code=error.code, where=name) from None


@dataclass(frozen=True)
class Posed:
    """A validated explicit problem, and what it was derived from."""

    paper: AnyPaper
    problem: Any
    inputs: Inputs
    cost_error: dict[str, float] | None
    relaxable: Mapping[str, tuple[str, float | str]] = field(default_factory=dict)
    multiples: Mapping[str, int] = field(default_factory=dict)
    beside: Beside = field(default_factory=lambda: Beside("."))


def pose(document: Json, options: DeriveOptions, beside: Beside | None = None) -> Posed:
    """Validate a problem document of either cost form and bring it to the explicit form. Raises BadInputError.

    What it names by file is read from ``beside``, by default the folder of the options.
    """
    beside = beside or Beside(options.base_folder)
    paper = paper_of(document)
    derivation: Derivation[Any] | None = None
    if "derive" in document:
        derivation = paper.derive(_derived(paper, document), options)
        problem = derivation.problem
    else:
        if options.profile is not None or options.extrapolate is not None:
            raise BadInputError(
                "--profile and --extrapolate need a derived problem; this one states its costs",
                code="unknown_field",
                where="derive",
            )
        problem = validate(paper.problem_model, document)
        problem = problem if paper.as_stated is None else paper.as_stated(problem)
    arrays = dict(derivation.arrays) if derivation else {}
    if paper.attach is not None:
        attached = paper.attach(problem, beside)
        problem = attached.problem
        for name, sha256 in attached.files.items():
            add_digest(arrays, name, sha256, "derive")
    problem = problem.sorted()
    return Posed(
        paper,
        problem,
        Inputs(
            problem_sha256=digest(dump_model(problem)),
            derive=derivation.derive if derivation else None,
            profile=derivation.profile if derivation else None,
            profile_sha256=derivation.profile_sha256 if derivation else None,
            arrays=arrays,
        ),
        dict(derivation.cost_error) if derivation and derivation.cost_error else None,
        derivation.relaxable if derivation else {},
        derivation.multiples if derivation else {},
        beside,
    )
