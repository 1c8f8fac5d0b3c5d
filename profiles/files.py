"""Profile files: read with one-line errors, written whole or not at all, the same content giving the same bytes."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

from pydantic import ValidationError

from profiles.document import FORMAT_VERSION, ProfileDocument
from profiles.errors import ProfileError, shown
from profiles.strict_json import parse, read_limited
from profiles.validation import first_error


def read_bytes(path: Path) -> bytes:
    """The bytes of a profile file. Raises `ProfileError` if it cannot be read or is over 256 MiB."""
    try:
        return read_limited(path)
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ProfileError(f"cannot read the profile {shown(path.name)}: {reason}", code="unknown_profile") from None


def parse_document(data: bytes, name: str) -> ProfileDocument:
    """The profile in `data`. Raises `ProfileError` that names table, column and row; `name` is for messages."""
    value = parse(data, name)
    if not isinstance(value, dict):
        raise ProfileError(f"{name}: expected an object, got {type(value).__name__}", code="wrong_type")
    version = value.get("format_version", FORMAT_VERSION)
    if isinstance(version, str) and version.split(".")[0] != FORMAT_VERSION.split(".")[0]:
        raise ProfileError(
            f"{name}: format_version {shown(version)!r} is not supported; "
            f"this program reads {FORMAT_VERSION.split('.')[0]}.x",
            code="unsupported_version",
            where="format_version",
        )
    try:
        return ProfileDocument.model_validate(value)
    except ValidationError as error:
        raise first_error(error, name, ProfileDocument) from None


def document_bytes(document: ProfileDocument) -> bytes:
    """Canonical bytes: sorted keys, one line per column, shortest round-trip floats, a newline at the end."""
    head = document.model_dump(exclude={"tables"})
    lines = ["{"]
    lines += [f"{json.dumps(key)}: {_compact(head[key])}," for key in sorted(head)]
    lines.append('"tables": [')
    for number, table in enumerate(document.tables):
        fields = table.model_dump()
        body = ",\n".join(f" {json.dumps(key)}: {_field(fields[key])}" for key in sorted(fields))
        lines.append("{\n" + body + "\n}" + ("," if number + 1 < len(document.tables) else ""))
    lines += ["]", "}", ""]
    return "\n".join(lines).encode()


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _field(value: object) -> str:
    if isinstance(value, dict) and value and all(isinstance(item, list) for item in value.values()):
        return "{\n" + ",\n".join(f"  {json.dumps(key)}: {_compact(value[key])}" for key in sorted(value)) + "\n }"
    return _compact(value)


def write_document(document: ProfileDocument, path: Path) -> None:
    """Write atomically: temporary file beside it, fsync, rename. Raises `OSError` if the place cannot be written."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(document_bytes(document))
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
