"""Files beside a problem or a plan: found in one folder, told apart by digest, read once."""

from __future__ import annotations

import hashlib
from codecs import BOM_UTF8
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from planner.errors import BadInputError

MAX_LINE_BYTES = 2**20
"""Of a file that is read line by line."""


@dataclass(frozen=True, eq=False)
class Beside:
    """A folder, and what was read from it, kept by digest for as long as a problem is solved again and again.

    ``base_names`` keeps to the folder itself: a plan names its files by base name, never by a path.
    """

    folder: str
    base_names: bool = False
    kept: dict[Hashable, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A file: where it is, the base name that a plan keeps of it, and the sha256 of its bytes."""

    path: Path
    name: str
    sha256: str


def find(beside: Beside, name: str, sha256: str | None, where: str) -> Found:
    """The file of a name, with the digest it must have if one is stated.

    Raises BadInputError: missing_field where there is none, array_mismatch where it is another file.
    """
    path = Path(beside.folder) / (Path(name).name if beside.base_names else name)
    try:
        if not path.is_file():
            raise _missing(beside, path.name, sha256, where)
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadInputError(f"cannot read {path.name}: {reason}", code="missing_field", where=where) from None
    if sha256 is not None and found != sha256:
        raise BadInputError(
            f"{path.name} is another file: expected sha256 {sha256}, got {found}", code="array_mismatch", where=where
        )
    return Found(path, path.name, found)


def lines_of(path: Path, where: str) -> Iterator[tuple[str, bytes]]:
    """The lines of a file that are not blank, each with a name for messages; a byte order mark is passed over.

    Raises BadInputError: too_large for a line of more than a mebibyte, missing_field where the file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            for number in range(1, 2**62):
                line = stream.readline(MAX_LINE_BYTES + 1)
                name = f"{path.name} line {number}"
                if not line:
                    return
                if len(line) > MAX_LINE_BYTES:
                    message = f"{name}: longer than {MAX_LINE_BYTES:,} bytes"
                    raise BadInputError(message, code="too_large", where=where)
                if number == 1:
                    line = line.removeprefix(BOM_UTF8)
                if line.strip():
                    yield name, line
    except OSError as error:
        message = f"cannot read {path.name}: {error.strerror or error}"
        raise BadInputError(message, code="missing_field", where=where) from None


def unread(name: str, sha256: str | None, where: str) -> BadInputError:
    """That what a problem names by file was never read, and how to say where it is."""
    return BadInputError(f"the file {_named(name, sha256)} was not read; {_HOW}", code="missing_field", where=where)


def _missing(beside: Beside, name: str, sha256: str | None, where: str) -> BadInputError:
    how = _HOW if beside.base_names else "a path in a problem is relative to its folder"
    message = f"the file {_named(name, sha256)} is not in {beside.folder}; {how}"
    return BadInputError(message, code="missing_field", where=where)


_HOW = "give the folder it is in: --data DIR, in Python data=DIR"


def _named(name: str, sha256: str | None) -> str:
    return name if sha256 is None else f"{name} with sha256 {sha256}"


def add_digest(files: dict[str, str], name: str, sha256: str, where: str) -> None:
    """Note a file's digest by its base name, which must mean one file. Raises BadInputError."""
    if files.setdefault(name, sha256) != sha256:
        raise BadInputError(
            f"two files are called {name} and differ: a plan tells them apart by base name; rename one",
            code="duplicate_id",
            where=where,
        )
