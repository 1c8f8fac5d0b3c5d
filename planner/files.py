"""Files in and out: at most 256 MiB read, replaced whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import sys
from pathlib import Path

from planner.errors import BadInputError

MAX_DOCUMENT_BYTES = 256 * 2**20


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


def write_atomically(path: str, data: bytes) -> None:
    """Replace a file whole or not at all: temporary file in the same folder, fsync, rename. ``-`` is stdout."""
    if path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    if not path:
        raise BadInputError("cannot write: the path is empty", code="out_of_range")
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
