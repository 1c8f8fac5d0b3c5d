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
        near = nearest_name(str(first["loc"][-1]), _field_names(model))
        text = f"unknown field {shown(str(first['loc'][-1]))!r}" + (f"; did you mean {near!r}?" if near else "")
    more = error.error_count() - 1
    rest = f" (and {more} more)" if more else ""
    return ProfileError(f"{name}: {text}{rest}", code=code, where=where or None)


def _field_names(model: type[BaseModel]) -> list[str]:
    """The fields of a model and of all models inside it."""
    found: dict[type[BaseModel], None] = {}
    waiting: list[Any] = [model]
    while waiting:
        item = waiting.pop()
        if isinstance(item, type) and issubclass(item, BaseModel):
            if item not in found:
                found[item] = None
                waiting += [field.annotation for field in item.model_fields.values()]
        else:
            waiting += list(getattr(item, "__args__", ()))
    return sorted({field for part in found for field in part.model_fields})


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "nothing"}
    return names.get(type(value), "a number")
