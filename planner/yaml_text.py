"""Safe YAML, read as JSON would read the same words."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from typing import Any

from planner.errors import BadInputError
from planner.json_text import TOO_WIDE, Json, is_64_bit

MAX_NODES = 5_000_000
MAX_DEPTH = 64


def parse_yaml(text: str, name: str) -> Json:
    """One document without aliases, tags or duplicate keys. Raises BadInputError."""
    import yaml

    class Loader(yaml.SafeLoader):
        """SafeLoader without aliases (they make exponential documents), dates, or silent duplicate keys."""

        nodes = 0
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            if isinstance(event, yaml.events.AliasEvent):
                raise BadInputError(f"{name} uses a YAML alias; write the value out", code="not_json")
            self.nodes += 1
            if self.nodes > MAX_NODES:
                raise BadInputError(f"{name} has more than {MAX_NODES} YAML nodes; use JSON", code="too_large")
            if self.depth > MAX_DEPTH:
                raise BadInputError(f"{name} is nested more than {MAX_DEPTH} levels deep", code="not_json")
            self.depth += 1
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            for position, key in enumerate(keys):
                if not isinstance(key, str):
                    line = node.value[position][0].start_mark.line + 1
                    raise BadInputError(f"{name} line {line}: key {key!r} is not a string", code="wrong_type")
            if len(set(keys)) != len(keys):
                twice = next(key for position, key in enumerate(keys) if key in keys[:position])
                raise BadInputError(f'{name} has the key "{twice[:80]}" twice in one mapping', code="duplicate_id")
            return super().construct_mapping(node, deep)

    Loader.yaml_implicit_resolvers = {}
    for kind, pattern, first in _PLAIN_YAML:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern), [*first, ""])
    try:
        value = yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise BadInputError(f"{name} is neither JSON nor YAML: {problem}{where}", code="not_json") from None
    except (ValueError, OverflowError) as error:
        raise BadInputError(f"{name} is not readable YAML: {error}", code="not_json") from None
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


def _refuse_other_than_json(value: Json, name: str) -> None:
    """What YAML can make and JSON cannot: non-finite floats, wide integers, and the types of explicit tags."""
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInputError(f"{name} holds {value}; numbers must be finite", code="not_finite")
    if isinstance(value, int) and not is_64_bit(value):
        raise BadInputError(f"{name} holds {str(value)[:40]}, {TOO_WIDE}", code="out_of_range")
    if not isinstance(value, dict | list | str | int | float | None):
        raise BadInputError(f"{name} holds a YAML {type(value).__name__}, which JSON has not", code="wrong_type")
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        _refuse_other_than_json(child, name)
