"""From a document to a validated model, and from pydantic's error to one line a user can act on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from planner.errors import BadInputError
from planner.fields import nearest
from planner.json_text import Json


class Document(BaseModel):
    """A frozen part of a file: unknown fields, NaN, infinities and coerced types are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class Forms(Document):
    """A document of one of several forms, its subclasses, which the value of the field ``told_by`` tells apart.

    Every form has that field as a ``Literal`` of one word; a default there is the form of a document without it.
    """

    told_by: ClassVar[str]

    @classmethod
    def forms(cls) -> dict[str, type[Self]]:
        """The forms by the word that names them; empty for a form itself."""
        found: dict[str, type[Self]] = {}
        for child in cls.__subclasses__():
            inner = child.forms()
            found |= inner or {get_args(child.model_fields[cls.told_by].annotation)[0]: child}
        return found

    @classmethod
    def form_of(cls, document: Mapping[str, Json]) -> type[Self]:
        """The form that a document states, or is by default. Raises BadInputError."""
        forms = cls.forms()
        if not forms:
            return cls
        words = " or ".join(sorted(forms))
        if cls.told_by not in document:
            for form in forms.values():
                if not form.model_fields[cls.told_by].is_required():
                    return form
            message = f'missing field "{cls.told_by}": expected {words}'
            raise BadInputError(message, code="missing_field", where=cls.told_by)
        word = document[cls.told_by]
        if not isinstance(word, str):
            message = f"expected {words}, got {shown_value(word)}"
            raise BadInputError(message, code="wrong_type", where=cls.told_by)
        if word not in forms:
            message = f"expected {words}, got {shown_value(word)}{nearest(word, sorted(forms))}"
            raise BadInputError(message, code="out_of_range", where=cls.told_by)
        return forms[word]


M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

Many = Annotated[tuple[T, ...], Field(strict=False)]
"""A JSON list, kept as a tuple."""


def _identity(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


Identity = Annotated[str, Field(min_length=1, max_length=200), BeforeValidator(_identity)]
"""An id: a string, or an integer that is read as its decimal string."""


def trusted(model: type[M], values: dict[str, object]) -> M:
    """A document from values made by ourselves, every field given, without validation: a tenth of its cost."""
    fields = _FIELDS.get(model) or _FIELDS.setdefault(model, set(model.model_fields))
    made = model.__new__(model)
    _set(made, "__dict__", values)
    _set(made, "__pydantic_fields_set__", fields)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made


_set = object.__setattr__
_FIELDS: dict[type[BaseModel], set[str]] = {}
"""Frozen documents never change which fields were set, so all that are made here share one set."""


_CODES = {
    "missing": "missing_field",
    "extra_forbidden": "unknown_field",
    "finite_number": "not_finite",
}
_RANGE_TYPES = {
    "greater_than", "greater_than_equal", "less_than", "less_than_equal", "too_short", "too_long",
    "string_too_short", "string_too_long", "literal_error", "enum", "multiple_of", "value_error",
}  # fmt: skip


def validate(model: type[M], document: Json) -> M:
    """Validate a document. Raises BadInputError with the path of the first fault, its bound, and what was got."""
    if not isinstance(document, dict):
        raise BadInputError(f"expected an object, got {_type_name(document)}", code="wrong_type")
    form = form_of(model, document)
    try:
        return form.model_validate(document)
    except ValidationError as error:
        raise _explain(error, form, document, _other_forms(model)) from None


def form_of(model: type[M], document: Mapping[str, Json]) -> type[M]:
    """The model that a document is read with: one of its forms where there are several. Raises BadInputError."""
    return model.form_of(document) if issubclass(model, Forms) else model


def forms_of(model: type[M]) -> list[type[M]]:
    """The forms of a model, or itself where there is one form only."""
    return list(model.forms().values()) or [model] if issubclass(model, Forms) else [model]


def _other_forms(model: type[BaseModel]) -> dict[str, set[str]]:
    """Of a document of several forms, the fields of each, by what tells it: ``task series``."""
    if not issubclass(model, Forms):
        return {}
    return {f"{model.told_by} {word}": set(form.model_fields) for word, form in model.forms().items()}


def _explain(
    error: ValidationError, model: type[BaseModel], document: Json, others: Mapping[str, set[str]]
) -> BadInputError:
    faults = error.errors(include_url=False)
    fault = _meant(faults, document)
    kind = str(fault["type"])
    names = _place(fault, document)
    where = ".".join(names) or None
    code = _CODES.get(kind) or ("out_of_range" if kind in _RANGE_TYPES else "wrong_type")
    message = str(fault["msg"])
    context = fault.get("ctx", {})
    beside = ""
    if kind == "value_error":
        cause = context.get("error")
        if isinstance(cause, _FaultError):
            return BadInputError(cause.message, code=cause.code, where=_join(where, cause.where))
        message = message.removeprefix("Value error, ")
    elif kind == "missing":
        beside = _beside_it(fault, faults)
        message = f'missing field "{names[-1] if names else "?"}"{beside}'
    elif kind == "union_tag_invalid":
        tags = [tag.strip(" '") for tag in str(context["expected_tags"]).split(",")]
        told = str(context["tag"])
        code, where = "out_of_range", _join(where, _tag_field(context))
        message = f"expected {' or '.join(tags)}, got {shown_value(told)}{nearest(told, tags)}"
    elif kind == "union_tag_not_found" and isinstance(fault.get("input"), dict):
        code, where = "missing_field", _join(where, _tag_field(context))
        message = f'missing field "{_tag_field(context)}"'
    elif kind == "union_tag_not_found":
        message = f"expected an object, got {shown_value(fault.get('input'))}"
    elif kind == "extra_forbidden":
        name = str(fault["loc"][-1])
        known = _known_fields(model, fault["loc"][:-1])
        forms = [form for form, fields in others.items() if len(fault["loc"]) == 1 and name in fields]
        elsewhere = "; it goes with another kind" if name in known else nearest(name, known)
        if forms:
            elsewhere = f"; it goes with {' or '.join(forms)}"
        message = f'unknown field "{name[:80]}"{elsewhere}'
    else:
        message = f"{message[:1].lower()}{message[1:]}, got {shown_value(fault.get('input'))}"
        message = "expected " + message.replace("input should be ", "").replace(" should have ", " with ")
        message = message.replace("a valid tuple", "a list")
    more = len(faults) - (2 if beside else 1)
    if more and not any(isinstance(f["loc"][0] if f["loc"] else "", int) for f in faults):
        message += f" (and {more} more)"
    return BadInputError(message, code=code, where=where)


def _tag_field(context: Mapping[str, Any]) -> str:
    """The field that tells the branches of a union apart; where a function does, it reads ``kind``."""
    discriminator = str(context["discriminator"])
    return discriminator.strip("'") if discriminator.startswith("'") else "kind"


def _beside_it(missing: ErrorDetails, faults: list[ErrorDetails]) -> str:
    """The field that may stand in the missing one's place: an unknown one of the same object."""
    for fault in faults:
        if fault["type"] == "extra_forbidden" and fault["loc"][:-1] == missing["loc"][:-1]:
            return f'; unknown field "{str(fault["loc"][-1])[:80]}"'
    return ""


def _meant(faults: list[ErrorDetails], document: Json) -> ErrorDetails:
    """Of a union's branches, all reported, the one that breaks only a rule, or reads deepest with fewest faults."""
    deepest = max(len(_place(fault, document)) for fault in faults)
    deep = [fault for fault in faults if len(_place(fault, document)) == deepest]
    object_of_first = _place(deep[0], document)[:-1]
    for fault in faults:
        if fault["type"] == "value_error" and _place(fault, document) == object_of_first:
            return fault
    rivals = [fault for fault in deep if _place(fault, document)[:-1] == object_of_first]
    faults_in_branch = Counter(fault["loc"][:-1] for fault in rivals)
    return min(rivals, key=lambda fault: faults_in_branch[fault["loc"][:-1]])


class _FaultError(ValueError):
    """Raised inside a model validator to carry a code and a path below the validated object."""

    def __init__(self, message: str, code: str, where: str | None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.where = where


def fault(message: str, *, code: str = "out_of_range", where: str | None = None) -> ValueError:
    """An error for a pydantic validator to raise: becomes BadInputError with this code and place."""
    return _FaultError(message, code, where)


def refuse_duplicates(values: Iterable[object], what: str, where: str | None = None) -> None:
    """Refuse the second occurrence of a value."""
    values = list(values)
    if len(set(values)) == len(values):
        return
    seen: set[object] = set()
    for value in values:
        if value in seen:
            shown = f'"{value}"' if isinstance(value, str) else str(value)
            raise fault(f"{what} {shown[:100]} occurs twice", code="duplicate_id", where=where)
        seen.add(value)


def _join(outer: str | None, inner: str | None) -> str | None:
    return ".".join(part for part in (outer, inner) if part) or None


def _place(fault: ErrorDetails, document: Json) -> list[str]:
    """Pydantic's location without the names of union branches and validators, ids instead of indices."""
    names: list[str] = []
    value = document
    location = fault["loc"]
    for step in location:
        if isinstance(step, int) and isinstance(value, list):
            element = value[step] if step < len(value) else None
            identity = element.get("id") if isinstance(element, dict) else None
            named = isinstance(identity, str | int) and not isinstance(identity, bool) and identity != ""
            names.append(str(identity) if named else str(step))
            value = element
        elif isinstance(value, dict) and step in value:
            names.append(str(step))
            value = value[step]
        elif fault["type"] == "missing" and step == location[-1] and isinstance(value, dict):
            names.append(str(step))
    return names


def _known_fields(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Field names of the model at a location (unknown branches contribute nothing)."""
    current: Any = model
    for step in location:
        models = _models_in(current)
        if isinstance(step, int):
            continue
        inner = [m.model_fields[step].annotation for m in models if step in m.model_fields]
        current = inner[0] if inner else next((m for m in models if m.__name__ == step), current)
    return sorted({name for m in _models_in(current) for name in m.model_fields})


def expects_list(model: type[BaseModel], path: str) -> bool:
    """Whether a field of a document, by its path, holds a list; elements on the way are named by index or id."""
    return any(_leads_to_list(form, path.split(".")) for form in forms_of(model))


def _leads_to_list(annotation: Any, names: Sequence[str]) -> bool:
    """Whether the value below an annotation holds a list; the id of an element may itself hold dots."""
    if not names:
        return any(get_origin(branch) in (tuple, list) for branch in _branches(annotation))
    for branch in _branches(annotation):
        inner = get_args(branch)
        if isinstance(branch, type) and issubclass(branch, BaseModel):
            found = names[0] in branch.model_fields
            if found and _leads_to_list(branch.model_fields[names[0]].annotation, names[1:]):
                return True
        elif get_origin(branch) in (tuple, list):
            if any(_leads_to_list(inner[0], names[width:]) for width in range(1, len(names) + 1)):
                return True
        elif get_origin(branch) is dict and _leads_to_list(inner[1], names[1:]):
            return True
    return False


def _branches(annotation: Any) -> Iterator[Any]:
    """What a value may be, through unions and what is annotated to them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _branches(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for argument in get_args(annotation):
            yield from _branches(argument)
    else:
        yield annotation


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for argument in getattr(annotation, "__args__", ()) for m in _models_in(argument)]


def shown_value(value: object) -> str:
    """A value from a document as a message may show it."""
    if isinstance(value, dict | list):
        return _type_name(value)
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _type_name(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
