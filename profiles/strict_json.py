"""JSON read strictly: no duplicate keys, no NaN, no placeholder files."""

from __future__ import annotations

import json
from typing import NoReturn

from profiles.errors import ProfileError

MAX_BYTES = 256 * 1024 * 1024
_LFS = b"version https://git-lfs"
_ANNEX = (b"/annex/objects/", b".git/annex/objects/")


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
    """The value in `data`. Raises `ProfileError` (not_json, not_finite, too_large); `name` is for messages."""
    if len(data) > MAX_BYTES:
        raise ProfileError(f"{name} has {len(data)} bytes; at most {MAX_BYTES} are read", code="too_large")
    refuse_placeholder(data, name)

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(items)
        if len(found) != len(items):
            keys = [key for key, _ in items]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ProfileError(f"{name}: the key {twice!r} occurs twice in one object", code="not_json", where=twice)
        return found

    def constant(text: str) -> NoReturn:
        raise ProfileError(f"{name}: {text} is not a number that can be used", code="not_finite")

    try:
        value: object = json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except UnicodeDecodeError as error:
        raise ProfileError(f"{name} is not UTF-8 text (byte {error.start})", code="not_json") from None
    except json.JSONDecodeError as error:
        raise ProfileError(
            f"{name} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}", code="not_json"
        ) from None
    except RecursionError:
        raise ProfileError(f"{name} is nested too deeply", code="not_json") from None
    return value
