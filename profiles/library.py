"""Built-in profiles by name, and profiles from files."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib import resources
from pathlib import Path

from profiles.errors import ProfileError, UnknownNameError, shown
from profiles.files import parse_document, read_bytes
from profiles.profile import Profile


def names() -> list[str]:
    """The built-in profile names, sorted."""
    folder = resources.files("profiles") / "tables"
    return sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))


def load(name_or_path: str | Path) -> Profile:
    """A built-in profile by name, or a profile file by path (anything with a separator or ending in `.json`).

    Loaded once per process and file state. Raises `UnknownNameError` (code `unknown_profile`) that lists the known
    names, or `ProfileError` naming the place inside the file.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or "/" in text or text.endswith(".json"):
        data = read_bytes(Path(name_or_path))
        return _parsed(data, Path(name_or_path).name)
    if _is_folder(text) and text not in names():
        message = f"{shown(text)} is a folder: name its file, ./{shown(text)}/profile.json"
        raise ProfileError(message, code="unknown_profile")
    return _built_in(text)


@lru_cache(maxsize=16)
def _built_in(name: str) -> Profile:
    known = names()
    if name not in known:
        raise UnknownNameError("profile", name, known, code="unknown_profile")
    return _parsed((resources.files("profiles") / "tables" / f"{name}.json").read_bytes(), f"{name}.json")


def _parsed(data: bytes, name: str) -> Profile:
    return Profile(parse_document(data, name), hashlib.sha256(data).hexdigest())


def _is_folder(text: str) -> bool:
    try:
        return Path(text).is_dir()
    except OSError:  # a name that no file system takes
        return False
