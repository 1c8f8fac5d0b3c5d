"""Documents at the door: strict JSON and safe YAML in, canonical bytes out, files replaced whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import secrets
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from planner.errors import BadInputError

MAX_DOCUMENT_BYTES = 256 * 2**20
MAX_DEPTH = 64
_MAX_YAML_NODES = 5_000_000

Json = Any
"""A JSON value. Documents are untyped only between the reader here and the pydantic model that validates them."""


def read_document(path: str) -> Json:
    """Read one JSON or YAML document from a file, or from standard input when ``path`` is ``-``.

    Raises BadInputError (not_json, not_finite, duplicate_id, too_large) naming the place in the text.
    """
    return parse_document(read_bytes(path), path)


def read_bytes(path: str) -> bytes:
    """The bytes of a file or standard input, at most 256 MiB."""
    if path == "-" and sys.stdin is None:
        raise BadInputError("standard input is closed", code="not_json")
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1)
        else:
            with Path(path).open("rb") as stream:
                data = stream.read(MAX_DOCUMENT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadInputError(f"cannot read {path}: {reason}", code="not_json") from None
    if len(data) > MAX_DOCUMENT_BYTES:
        raise BadInputError(f"{path} is larger than the {MAX_DOCUMENT_BYTES // 2**20} MiB limit", code="too_large")
    return data


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
        value = parse_json(text, name) if looks_like_json and not yaml_name else _parse_yaml(text, name)
    except RecursionError:
        raise BadInputError(f"{name} is nested too deeply", code="not_json") from None
    _refuse_deep(value, name)
    if "\\ud" in text.lower():
        _refuse_half_pairs(value, name)
    return value


def parse_json(text: str, name: str) -> Json:
    """Strict JSON: finite numbers of at most 64 bits, no key twice in an object. Raises BadInputError."""

    def no_constant(word: str) -> Json:
        raise BadInputError(f"{name} holds {word}; numbers must be finite", code="not_finite")

    def finite(digits: str) -> float:
        number = float(digits)
        if math.isinf(number):
            raise BadInputError(f"{name} holds {digits[:40]}, which overflows a 64-bit float", code="not_finite")
        return number

    def integer(digits: str) -> int:
        if len(digits) > 20 or not _is_64_bit(int(digits)):
            raise BadInputError(f"{name} holds {digits[:40]}, {_TOO_WIDE}", code="out_of_range")
        return int(digits)

    def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        mapping = dict(pairs)
        if len(mapping) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise BadInputError(f'{name} has the key "{key[:80]}" twice in one object', code="duplicate_id")
                seen.add(key)
        return mapping

    try:
        return json.loads(
            text, parse_constant=no_constant, parse_float=finite, parse_int=integer, object_pairs_hook=unique
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadInputError(f"{name} is not JSON: {error.msg} ({where})", code="not_json") from None


def _parse_yaml(text: str, name: str) -> Json:
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
            if self.nodes > _MAX_YAML_NODES:
                raise BadInputError(f"{name} has more than {_MAX_YAML_NODES} YAML nodes; use JSON", code="too_large")
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


def _is_64_bit(number: int) -> bool:
    return -(2**63) <= number < 2**64


_TOO_WIDE = "which no 64-bit integer holds; write it as a float"


def _refuse_other_than_json(value: Json, name: str) -> None:
    """What YAML can make and JSON cannot: non-finite floats, wide integers, and the types of explicit tags."""
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInputError(f"{name} holds {value}; numbers must be finite", code="not_finite")
    if isinstance(value, int) and not _is_64_bit(value):
        raise BadInputError(f"{name} holds {str(value)[:40]}, {_TOO_WIDE}", code="out_of_range")
    if not isinstance(value, dict | list | str | int | float | None):
        raise BadInputError(f"{name} holds a YAML {type(value).__name__}, which JSON has not", code="wrong_type")
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        _refuse_other_than_json(child, name)


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


def write_atomically(path: str, data: bytes) -> None:
    """Replace a file whole or not at all: temporary file in the same folder, fsync, rename. ``-`` is stdout."""
    if path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    try:
        if target.is_symlink():
            target = Path(os.path.realpath(target))
            if target.is_symlink():
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.exists() and not target.is_file():
            if target.is_dir():
                raise BadInputError(f"cannot write {path}: it is a directory", code="out_of_range")
            with target.open("wb") as stream:  # a device or pipe has nothing to replace
                stream.write(data)
            return
        _replace(target, data)
    except OSError as error:
        raise BadInputError(f"cannot write {path}: {error.strerror or error}", code="out_of_range") from None


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".plan-{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
