"""The JSON object in a model's file, and what the model is called."""

from __future__ import annotations

from pathlib import Path

from profiles.errors import ProfileError, shown
from profiles.strict_json import parse, read_limited

MAX_FILE_BYTES = 1 << 22


def read_object(path: Path) -> dict[str, object]:
    """The object in a file. Raises `ProfileError`: unknown_model if it cannot be read, not_json, too_large, ..."""
    file = shown(path.name)
    try:
        data = read_limited(path)
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ProfileError(f"cannot read the model {file}: {reason}", code="unknown_model") from None
    if len(data) > MAX_FILE_BYTES:
        raise ProfileError(f"{file} has {len(data)} bytes, too many for a model's sizes", code="too_large")
    value = parse(data, file)
    if not isinstance(value, dict):
        raise ProfileError(f"{file}: expected an object with a model's sizes", code="wrong_type")
    return value


def name_of(path: Path) -> str:
    """The model's name: the file's, or its folder's where it is called config.json."""
    name = path.absolute().parent.name if path.name == "config.json" else path.stem.removesuffix("_config")
    return name[:100] or "custom"
