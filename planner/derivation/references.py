"""What a derived problem refers to: built-in names, files beside it, and whose complaint it is if one is wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from planner.errors import BadInputError
from profiles.errors import ProfileError


@contextmanager
def input_errors(where: str) -> Iterator[None]:
    """A profile's complaint becomes the planner's, with a place in the problem file."""
    try:
        yield
    except ProfileError as error:
        inside = f" (in its {error.where})" if error.where else ""
        raise BadInputError(f"{error.message}{inside}", code=error.code, where=where) from None


def located(name: str, folder: Path) -> str:
    """A file is relative to the problem's folder; a built-in name is left alone."""
    return str(folder / name) if is_file(name) else name


def is_file(name: str) -> bool:
    """Whether a name means a file rather than something built in."""
    return "/" in name or name.endswith(".json")


def model_file(model: object, folder: Path) -> list[Path]:
    """The file that a model is named by, if it is."""
    return [folder / model] if isinstance(model, str) and is_file(model) else []


def digests(paths: Iterable[Path]) -> dict[str, str]:
    """sha256 of files, by base name: a plan keeps no path."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
