"""Safe YAML for the planner's documents: read by `profiles.strict_yaml`, refused in the planner's own words."""

from __future__ import annotations

from planner.errors import BadInputError
from planner.json_text import Json
from profiles import strict_yaml
from profiles.errors import ProfileError

MAX_NODES = strict_yaml.MAX_NODES
MAX_DEPTH = strict_yaml.MAX_DEPTH


def parse_yaml(text: str, name: str) -> Json:
    """One document without aliases, tags or duplicate keys. Raises BadInputError."""
    try:
        return strict_yaml.parse_yaml(text, name, max_nodes=MAX_NODES, max_depth=MAX_DEPTH)
    except ProfileError as error:
        raise BadInputError(error.message, code=error.code) from None
