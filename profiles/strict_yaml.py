"""Safe YAML, read as JSON would read the same words: no aliases, tags, dates, duplicate keys or non-finite numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from typing import Any

from profiles.errors import ProfileError

MAX_NODES = 5_000_000
MAX_DEPTH = 64
TOO_WIDE = "which no 64-bit integer holds; write it as a float"


def parse_yaml(text: str, name: str, *, max_nodes: int = MAX_NODES, max_depth: int = MAX_DEPTH) -> object:
    """One document without aliases, tags or duplicate keys; `name` is for messages.

    Raises `ProfileError` (not_json, wrong_type, duplicate_id, not_finite, out_of_range, too_large).
    """
    import yaml

    class Loader(yaml.SafeLoader):
        """SafeLoader without aliases (they make exponential documents), dates, or silent duplicate keys."""

        nodes = 0
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            if isinstance(event, yaml.events.AliasEvent):
                raise ProfileError(f"{name} uses a YAML alias; write the value out", code="not_json")
            self.nodes += 1
            if self.nodes > max_nodes:
                raise ProfileError(f"{name} has more than {max_nodes} YAML nodes; use JSON", code="too_large")
            if self.depth > max_depth:
                raise ProfileError(f"{name} is nested more than {max_depth} levels deep", code="not_json")
            self.depth += 1
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            for position, key in enumerate(keys):
                if not isinstance(key, str):
                    line = node.value[position][0].start_mark.line + 1
                    raise ProfileError(f"{name} line {line}: key {key!r} is not a string", code="wrong_type")
            if len(set(keys)) != len(keys):
                twice = next(key for position, key in enumerate(keys) if key in keys[:position])
                raise ProfileError(f'{name} has the key "{twice[:80]}" twice in one mapping', code="duplicate_id")
            return super().construct_mapping(node, deep)

    Loader.yaml_implicit_resolvers = {}
    for kind, pattern, first in _PLAIN_YAML:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern), [*first, ""])
    try:
        value: object = yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ProfileError(f"{name} is neither JSON nor YAML: {problem}{where}", code="not_json") from None
    except (ValueError, OverflowError) as error:
        raise ProfileError(f"{name} is not readable YAML: {error}", code="not_json") from None
    _refuse_other_than_json(value, name)
    return value


_PLAIN_YAML = (
    ("null", r"^(?:~|null|Null|NULL|)$", "~nN"),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    ("float", r"^[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)$",
     "-+.0123456789"),
    ("float", r"^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$", "-+."),
)  # fmt: skip
"""How a plain YAML word is read: as JSON would, with 1e9 a number, and without YAML 1.1's surprises (012 is not 10,
1:30 not 90, no and off not false, a date not a date)."""


def _refuse_other_than_json(value: object, name: str) -> None:
    """What YAML can make and JSON cannot: non-finite floats, wide integers, and the types of explicit tags."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ProfileError(f"{name} holds {value}; numbers must be finite", code="not_finite")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ProfileError(f"{name} holds {str(value)[:40]}, {TOO_WIDE}", code="out_of_range")
    if not isinstance(value, dict | list | str | int | float | None):
        raise ProfileError(f"{name} holds a YAML {type(value).__name__}, which JSON has not", code="wrong_type")
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        _refuse_other_than_json(child, name)
