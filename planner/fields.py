"""Paths into a document: ``cluster.memory_cap_bytes``, ``groups.img.options.0.time_s``.

A list element is named by its index or, where elements have an ``id``, by that id. Where values are looked for, ``*``
names every element.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from planner.errors import BadInputError
from planner.json_text import Json, parse_json

EVERY = "*"


@dataclass(frozen=True)
class Place:
    """One field of a document: what holds it, its name or index there, and the path that led to it."""

    holder: Json
    key: str | int
    path: str

    @property
    def value(self) -> Json:
        """What stands there."""
        return self.holder[self.key]

    def put(self, value: Json) -> None:
        """Another value in its place."""
        self.holder[self.key] = value

    def inside(self) -> Iterator[Place]:
        """The fields or elements of the value, none if it is no object or list."""
        value = self.value
        if isinstance(value, dict | list):
            for key in value if isinstance(value, dict) else range(len(value)):
                yield Place(value, key, f"{self.path}.{key}")


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


def find_places(document: Json, path: str) -> list[Place]:
    """Where a path leads, to several places if it says ``*``. Raises BadInputError (unknown_field)."""
    return list(_places(document, path.split("."), []))


def _places(value: Json, names: list[str], passed: list[str]) -> Iterator[Place]:
    width = _width(value, names)
    name, rest = ".".join(names[:width]), names[width:]
    where = ".".join([*passed, name])
    if isinstance(value, dict):
        if name not in value:
            raise BadInputError(f'unknown field "{name[:80]}"{nearest(name, value)}', code="unknown_field", where=where)
        found = [Place(value, name, where)]
    elif isinstance(value, list):
        found = [Place(value, index, ".".join([*passed, step])) for index, step in _elements(value, name, where)]
    else:
        inside = ".".join(passed)
        what = f'"{inside}" is null here: state it whole' if value is None else f'"{inside}" has no fields'
        raise BadInputError(f'{what}; "{where}" leads into it', code="unknown_field", where=where)
    for place in found:
        yield from _places(place.value, rest, [place.path]) if rest else (place,)


def _elements(elements: list[Json], name: str, where: str) -> list[tuple[int, str]]:
    """The elements that a name stands for: their indices, and how a path names each."""
    if name != EVERY or EVERY in _ids(elements):
        return [(_index(elements, name, where, f"; {EVERY} is all of them"), name)]
    if not elements:
        raise BadInputError("the list has no elements", code="unknown_field", where=where)
    return [(index, str(index)) for index in range(len(elements))]


def set_field(document: Json, path: str, value: Json) -> None:
    """Set one field in place. Missing objects on the way are made (validation judges their names), list elements not.

    A scalar given where a list stands means a list of one; null takes the list away. Raises BadInputError
    (unknown_field).
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
        if isinstance(parent.get(last), list) and not isinstance(value, list | dict | None):
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


def _index(elements: list[Json], name: str, path: str, more: str = "") -> int:
    known = _ids(elements)
    if name in known:
        return next(i for i, e in enumerate(elements) if isinstance(e, dict) and str(e.get("id")) == name)
    if name.isdecimal() and int(name) < len(elements):
        return int(name)
    hint = nearest(name, known) or f" (indices 0..{len(elements) - 1}{more})"
    raise BadInputError(f'no element "{name}"{hint}', code="unknown_field", where=path)


def _ids(elements: list[Json]) -> list[str]:
    ids = [element.get("id") for element in elements if isinstance(element, dict)]
    return [str(identity) for identity in ids if identity is not None]
