"""JSON read strictly: no duplicate keys, no NaN, no endless numbers or files, no placeholder files."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import NoReturn

from profiles.errors import ProfileError, shown

MAX_BYTES = 256 * 1024 * 1024
MAX_DIGITS = 20
"""Of an integer: 2^64 has 20."""
_LFS = b"version https://git-lfs"
_ANNEX = (b"/annex/objects/", b".git/annex/objects/")


def refuse_special(path: Path) -> None:
    """Raise `ProfileError` for a pipe, a socket or a device, which may never end or never begin; `OSError` for none."""
    mode = path.stat().st_mode
    # A folder's own error says more when it is opened.
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ProfileError(
            f"{shown(path.name)} is not a regular file: pipes and devices are not read", code="wrong_type"
        )


def read_limited(path: Path) -> bytes:
    """The bytes of a regular file. Raises `OSError`, or `ProfileError` for another kind of file and over 256 MiB."""
    refuse_special(path)
    with path.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ProfileError(f"{shown(path.name)} is too large; at most {MAX_BYTES} bytes are read", code="too_large")
    return data


def refuse_placeholder(data: bytes, name: str) -> None:
    """Raise `not_json` if the bytes only stand for a file that is kept elsewhere (Git LFS, git-annex), or are empty."""
    head = data[:200]
    if head.startswith(_LFS):
        raise ProfileError(
            f"{name} is a Git LFS pointer, not the file itself: run `git lfs pull`, then try again", code="not_json"
        )
    if any(mark in head for mark in _ANNEX) and len(data) < 1000:
        raise ProfileError(f"{name} is a git-annex pointer, not the file itself", code="not_json")
    if not data.strip():
        raise ProfileError(f"{name} is empty", code="not_json")


def parse(data: bytes, name: str) -> object:
    """The value in `data`; `name` is for messages.

    Raises `ProfileError` (not_json, not_finite, out_of_range, too_large).
    """
    if len(data) > MAX_BYTES:
        raise ProfileError(f"{name} has {len(data)} bytes; at most {MAX_BYTES} are read", code="too_large")
    refuse_placeholder(data, name)

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(items)
        if len(found) != len(items):
            keys = [key for key, _ in items]
            twice = next(key for key in keys if keys.count(key) > 1)
            twice = shown(twice)
            raise ProfileError(f"{name}: the key {twice!r} occurs twice in one object", code="not_json", where=twice)
        return found

    def constant(text: str) -> NoReturn:
        raise ProfileError(f"{name}: {text} is not a number that can be used", code="not_finite")

    def integer(text: str) -> int:
        digits = len(text.removeprefix("-"))
        if digits > MAX_DIGITS:
            raise ProfileError(
                f"{name}: expected integers of at most {MAX_DIGITS} digits, got one of {digits}", code="out_of_range"
            )
        return int(text)

    try:
        value: object = json.loads(
            data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant, parse_int=integer
        )
    except UnicodeDecodeError as error:
        raise ProfileError(f"{name} is not UTF-8 text (byte {error.start})", code="not_json") from None
    except json.JSONDecodeError as error:
        raise ProfileError(
            f"{name} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}", code="not_json"
        ) from None
    except RecursionError:
        raise ProfileError(f"{name} is nested too deeply", code="not_json") from None
    return value
