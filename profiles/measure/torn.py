"""What a run that was killed may leave at the end of a log: part of a line. Everything else in it is kept."""

from __future__ import annotations

import json


def without_torn_tail(data: bytes, header: bytes) -> bytes:
    """The log less a last line that was cut off: one without a line end that is no JSON, after a whole line.

    A file of less than one line is kept as it is, for its reader to refuse, unless it is the beginning of `header`.
    Lines may end in LF, CR or both: an editor may have been there.
    """
    end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    if end == 0:
        return b"" if header.startswith(data) and data != header.rstrip() else data
    return data if _is_json(data[end:]) else data[:end]


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
