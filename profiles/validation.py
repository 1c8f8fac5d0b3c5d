"""From a document to a frozen pydantic model, and from pydantic's error to one line that says what, where and why."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from profiles.errors import ProfileError, nearest_name, shown

_CODES = {"missing": "missing_field", "extra_forbidden": "unknown_field", "finite_number": "not_finite"}
_OUT_OF_RANGE = ("greater_than", "less_than", "too_short", "too_long", "literal_error", "string_", "value_error")


class Part(BaseModel):
    """A part of a file: frozen, unknown fields refused, text never taken for a number, numbers finite."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


M = TypeVar("M", bound=BaseModel)


def validate(model: type[M], value: object, name: str) -> M:
    """The model that `value` describes; `name` is for messages.

    Raises `ProfileError` with the path of the first fault, what was expected and what was got; an unknown field names
    the nearest known one.
    """
    if not isinstance(value, dict):
        raise ProfileError(f"{name}: expected an object, got {_kind(value)}", code="wrong_type")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise first_error(error, name, model) from None


def first_error(error: ValidationError, name: str, model: type[BaseModel]) -> ProfileError:
    """The fault to show of all that pydantic found in a document of `model`."""
    # An unknown field comes first: next to a missing one it is most often that one, misspelt.
    first = min(error.errors(include_url=False), key=lambda found: found["type"] != "extra_forbidden")
    kind, where = first["type"], ".".join(shown(str(part)) for part in first["loc"])
    code = _CODES.get(kind) or ("out_of_range" if kind.startswith(_OUT_OF_RANGE) else "wrong_type")
    got = first.get("input")
    text = first["msg"].removeprefix("Value error, ")
    if isinstance(got, int | float | str | bool) and kind != "value_error":
        text += f", got {got!r:.80}"
    if code == "unknown_field":
        near = nearest_name(str(first["loc"][-1]), _field_names(model, first["loc"][:-1]))
        text = f"unknown field {shown(str(first['loc'][-1]))!r}" + (f"; did you mean {near!r}?" if near else "")
    more = error.error_count() - 1
    rest = f" (and {more} more)" if more else ""
    return ProfileError(f"{name}: {text}{rest}", code=code, where=where or None)


def _field_names(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The fields of the models that may stand at a location of a document."""
    current: list[type[BaseModel]] = [model]
    for step in location:
        inside = [part.model_fields[step].annotation for part in current if step in part.model_fields]
        # An index, a key of a mapping and the name of a union's branch lead to no other model.
        current = [found for annotation in inside for found in _models_in(annotation)] if inside else current
    return sorted({field for part in current for field in part.model_fields})


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in getattr(annotation, "__args__", ()) for found in _models_in(argument)]


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "nothing"}
    return names.get(type(value), "a number")
