"""Paths into a document: ``cluster.memory_cap_bytes``, ``groups.img.options.0.time_s``.

A list element is named by its index or, where elements have an ``id``, by that id.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from planner.errors import BadInputError
from planner.json_text import Json, parse_json


def nearest(name: str, known: Iterable[str]) -> str:
    """`` (did you mean X?)`` for the closest known name, or an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f' (did you mean "{close[0]}"?)' if close else ""


def parse_setting(setting: str, option: str = "--set") -> tuple[str, Json]:
    """Split ``PATH=VALUE``, which ``option`` gave; the value is JSON, else a string. Raises BadInputError."""
    path, separator, text = setting.partition("=")
    if not separator or not path:
        raise BadInputError(f'expected PATH=VALUE, got "{setting}"', code="wrong_type", where=option)
    try:
        return path, parse_json(text, option)
    except RecursionError:
        return path, text
    except BadInputError as error:
        if error.code == "not_json":
            return path, text
        raise BadInputError(error.message, code=error.code, where=path) from None


def get_field(document: Json, path: str) -> Json:
    """The value of one field. Raises BadInputError (unknown_field), at the name that leads nowhere."""
    names = path.split(".")
    value, depth = document, 0
    while depth < len(names):
        width = _width(value, names[depth:])
        name, depth = ".".join(names[depth : depth + width]), depth + width
        where = ".".join(names[:depth])
        if isinstance(value, dict):
            if name not in value:
                raise BadInputError(
                    f'unknown field "{name[:80]}"{nearest(name, value)}', code="unknown_field", where=where
                )
            value = value[name]
        elif isinstance(value, list):
            value = value[_index(value, name, where)]
        else:
            raise BadInputError(
                f'"{where}" leads through a value that has no fields', code="unknown_field", where=where
            )
    return value


def set_field(document: Json, path: str, value: Json) -> None:
    """Set one field in place. Missing objects on the way are made (validation judges their names), list elements not.

    A scalar given where a list stands means a list of one. Raises BadInputError (unknown_field).
    """
    names = path.split(".")
    parent = document
    depth = 0
    while True:
        width = _width(parent, names[depth:])
        last, depth = ".".join(names[depth : depth + width]), depth + width
        if depth == len(names):
            break
        parent = _child(parent, last, ".".join(names[:depth]))
    if isinstance(parent, dict):
        if isinstance(parent.get(last), list) and not isinstance(value, list | dict):
            value = [value]
        parent[last] = value
    elif isinstance(parent, list):
        parent[_index(parent, last, path)] = value
    else:
        raise BadInputError(f'"{path}" leads through a value that has no fields', code="unknown_field", where=path)


def _width(parent: Json, names: list[str]) -> int:
    """How many names in front are one step: an id of a list's element may itself hold dots."""
    elements = parent if isinstance(parent, list) else ()
    ids = {str(element.get("id")) for element in elements if isinstance(element, dict)}
    widest = min(len(names), max((identity.count(".") + 1 for identity in ids), default=1))
    return next((width for width in range(widest, 1, -1) if ".".join(names[:width]) in ids), 1)


def _child(parent: Json, name: str, path: str) -> Json:
    if isinstance(parent, dict):
        if parent.get(name) is None:
            parent[name] = {}
        return parent[name]
    if isinstance(parent, list):
        return parent[_index(parent, name, path)]
    raise BadInputError(f'"{path}" leads through a value that has no fields', code="unknown_field", where=path)


def _index(elements: list[Json], name: str, path: str) -> int:
    ids = [element.get("id") for element in elements if isinstance(element, dict)]
    if name in [str(identity) for identity in ids if identity is not None]:
        return next(i for i, e in enumerate(elements) if isinstance(e, dict) and str(e.get("id")) == name)
    if name.isdecimal() and int(name) < len(elements):
        return int(name)
    known = [str(identity) for identity in ids if identity is not None]
    hint = nearest(name, known) or f" (indices 0..{len(elements) - 1})"
    raise BadInputError(f'no element "{name}"{hint}', code="unknown_field", where=path)
