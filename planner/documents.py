"""Documents at the door: JSON or YAML in, canonical bytes out."""

from __future__ import annotations

import hashlib

from planner.errors import BadInputError
from planner.files import read_bytes
from planner.json_text import Json, parse_json
from planner.yaml_text import MAX_DEPTH, parse_yaml


def read_document(path: str) -> Json:
    """Read one JSON or YAML document from a file, or from standard input when ``path`` is ``-``.

    Raises BadInputError (not_json, not_finite, duplicate_id, too_large) naming the place in the text.
    """
    return parse_document(read_bytes(path), path)


def parse_document(data: bytes, name: str) -> Json:
    """Parse JSON, or YAML when the name ends in .yaml/.yml or the text does not start like JSON."""
    name = "standard input" if name == "-" else name
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInputError(f"{name} is not UTF-8 text (byte {error.start})", code="not_json") from None
    if text.startswith("version https://git-lfs.github.com/spec"):
        raise BadInputError(f"{name} is a Git LFS pointer, not the file itself", code="not_json")
    if not text.strip():
        raise BadInputError(f"{name} is empty", code="not_json")
    yaml_name = name.lower().endswith((".yaml", ".yml"))
    looks_like_json = text.lstrip()[:1] in ("{", "[")
    try:
        value = parse_json(text, name) if looks_like_json and not yaml_name else parse_yaml(text, name)
    except RecursionError:
        raise BadInputError(f"{name} is nested too deeply", code="not_json") from None
    _refuse_deep(value, name)
    if "\\ud" in text.lower():
        _refuse_half_pairs(value, name)
    return value


def _refuse_half_pairs(value: Json, name: str) -> None:
    """A lone surrogate (half of a character) is not text and cannot be written back."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadInputError(f"{name} holds half a surrogate pair, which is not text", code="not_json") from None
    parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        _refuse_half_pairs(part, name)


def _refuse_deep(value: Json, name: str, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise BadInputError(f"{name} is nested more than {MAX_DEPTH} levels deep", code="not_json")
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in [child for child in children if child.__class__ is dict or child.__class__ is list]:
        _refuse_deep(child, name, depth + 1)


def canonical_bytes(value: Json) -> bytes:
    """UTF-8, sorted keys, two-space indent, shortest round-trip floats, newline at the end.

    Raises BadInputError for a value made in Python that JSON cannot hold.
    """
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    try:
        return orjson.dumps(value, option=options)
    except orjson.JSONEncodeError as error:
        raise BadInputError(f"not a JSON value: {error}", code="wrong_type") from None


def digest(value: Json) -> str:
    """sha256 of the canonical bytes, in hexadecimal."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()
