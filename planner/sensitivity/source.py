"""Where the problems of a question come from: the plan's explicit costs, or what these were derived from."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from planner import __version__
from planner.beside import Beside
from planner.documents import canonical_bytes
from planner.envelope import dump_model
from planner.errors import BadInputError, InfeasibleError, LimitError
from planner.json_text import Json, parse_json
from planner.paper import DeriveOptions
from planner.plan import Plan
from planner.pose import Posed, pose
from planner.validation import form_of, validate

DERIVE = "derive"
"""The first name of paths into the derived form."""
_HOW = "files that it names are looked for beside the plan, or in --data DIR (in Python data=DIR)"


@dataclass(frozen=True)
class Source:
    """A problem document of either cost form, and how one like it is posed.

    ``posed`` is the document as it is. ``other`` says why that is not the plan's problem, None where it is.
    """

    document: Json
    model: type[BaseModel]
    options: DeriveOptions
    beside: Beside | None
    posed: Posed
    other: str | None = None

    def fresh(self) -> Json:
        """The document, to be changed."""
        return plain(self.document)

    def fields(self) -> Json:
        """The document with its optional fields, null where they are not set: for finding, not for posing."""
        return plain(validate(self.model, self.document).model_dump())

    def refusal(self, document: Json) -> BadInputError | None:
        """Why a document is not valid in itself, which is quick to say."""
        try:
            validate(self.model, document)
        except BadInputError as error:
            return error
        return None

    def unposed(self, document: Json) -> BadInputError | None:
        """Why a document cannot be brought to the explicit form: no price, no file. That nothing fits is no reason."""
        try:
            self.pose(document)
        except BadInputError as error:
            return error
        except (InfeasibleError, LimitError):
            return None
        return None

    def pose(self, document: Json) -> Posed:
        """The explicit problem of a document. Raises BadInputError and InfeasibleError."""
        return pose(document, self.options, self.beside)


def plain(document: Json) -> Json:
    """Lists instead of tuples, and nothing shared with the model it came from."""
    return parse_json(canonical_bytes(document).decode(), "the problem")


def source_of(plan: Plan, path: str) -> Source:
    """Where a path leads: below ``derive``, or to what a derivation goes by, to the derived form, else to the explicit.

    Raises BadInputError if the plan holds no derived form, or its costs cannot be derived again.
    """
    head = path.partition(".")[0]
    if plan.inputs.derive is not None and head != path and path in plan.paper.derives_by:
        raise _elsewhere(plan, path, head)
    if head == DERIVE or (plan.inputs.derive is not None and head in plan.paper.derives_by):
        return _derived(plan, path)
    document = plain(dump_model(plan.problem))
    options = DeriveOptions()
    return Source(document, type(plan.problem), options, plan.beside, pose(document, options, plan.beside))


def _elsewhere(plan: Plan, path: str, head: str) -> BadInputError:
    """That a field of the explicit form follows from one of the derived form."""
    given = plan.inputs.derive
    fields = given.get(head) if isinstance(given, dict) else None
    such = f": {', '.join(f'{DERIVE}.{head}.{name}' for name in fields)}" if isinstance(fields, dict) else ""
    message = f"{path} follows from what the costs were derived from: ask about {DERIVE}.{head}{such}"
    return BadInputError(message, code="unknown_field", where=path)


def _derived(plan: Plan, path: str) -> Source:
    given = plan.inputs.derive
    if not isinstance(given, dict):
        raise BadInputError(
            "the plan was made from explicit costs, which were derived from nothing; its fields are those that plan "
            "expand prints",
            code="unknown_field",
            where=path,
        )
    options = DeriveOptions(base_folder=plan.beside.folder if plan.beside else ".")
    written, explicit = dump_model(plan.problem), type(plan.problem)
    derived = form_of(plan.paper.derived_model, written)
    kept = {name: value for name, value in written.items() if name in derived.model_fields}
    document = plain({**kept, DERIVE: {name: value for name, value in given.items() if name != "resolved"}})
    try:
        posed = pose(document, options, plan.beside)
    except BadInputError as error:
        message = f"the plan's costs cannot be derived again: {error.message}; {_HOW}"
        raise BadInputError(message, code=error.code, where=error.where) from None
    if posed.inputs.problem_sha256 != plan.inputs.problem_sha256:
        return Source(document, derived, options, plan.beside, posed, _why_other(plan, posed))
    filled = {name for name in kept if _is_filled_in(explicit.model_fields[name], derived.model_fields[name])}
    shorter = {name: value for name, value in document.items() if name not in filled}
    if filled and _gives(posed, shorter, options, plan.beside):
        document = shorter
    return Source(document, derived, options, plan.beside, posed)


def _is_filled_in(explicit: FieldInfo, derived: FieldInfo) -> bool:
    """Whether a derivation fills a field in where its own document leaves it out."""
    unset = derived.default is None and explicit.default is not None
    return not derived.is_required() and (explicit.is_required() or unset)


def _gives(posed: Posed, shorter: Json, options: DeriveOptions, beside: Beside | None) -> bool:
    """Whether a document without what the derivation may fill in itself gives the same problem.

    A plan does not tell whether that was stated. Left out, it follows what moves, as the configurations follow ranks.
    """
    try:
        return pose(shorter, options, beside).inputs.problem_sha256 == posed.inputs.problem_sha256
    except (BadInputError, InfeasibleError):
        return False


def _why_other(plan: Plan, posed: Posed) -> str:
    """What changed since the plan was made, as far as digests tell."""
    then, now = plan.inputs, posed.inputs
    changed = [f"the cost table {then.profile}"] if then.profile_sha256 != now.profile_sha256 else []
    changed += [name for name in sorted(then.arrays) if now.arrays.get(name) != then.arrays[name]]
    if changed:
        return f"{' and '.join(changed)} changed since"
    return f"it was derived by planner {plan.planner}" if plan.planner != __version__ else "the plan states other costs"
