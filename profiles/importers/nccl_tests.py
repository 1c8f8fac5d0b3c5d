"""nccl-tests and rccl-tests text logs: collective rows with their ranks and nodes.

The out-of-place columns become backend `nccl`, the in-place columns `nccl_in_place`: they differ, and which of them a
program meets depends on its buffers. The printed average bandwidth mixes all sizes and is never read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from profiles.building import RawRows, build_table
from profiles.document import Device, ProfileDocument, Provenance
from profiles.errors import ProfileError, shown
from profiles.importers.nccl_log import NAMELESS, OPERATIONS, SIZE_0, Log, LogRow, read_log
from profiles.strict_json import read_limited, refuse_placeholder

_PATH = re.compile(r"^([a-z_]+)=(.+)$")
_PLACE = re.compile(r"^.*?:\d+: ")


def import_logs(files: Sequence[str], *, name: str | None = None) -> tuple[ProfileDocument, list[str]]:
    """One profile from logs, each given as PATH or OPERATION=PATH, and one message for every line not read.

    Raises `ProfileError` (missing_field) if no row is left; the message then holds the first reasons.
    """
    if not files:
        raise ProfileError("name at least one log to import", code="missing_field", where="files")
    logs = [(Path(path), _read(path, operation)) for operation, path in map(_split, files)]
    messages = [line for _, log in logs for line in (*log.remarks, *log.refused)]
    rows = [row for _, log in logs for row in log.rows]
    if not rows:
        reasons = (
            "; ".join(_reasons(line for _, log in logs for line in log.refused))
            or "no line looks like a row of nccl-tests"
        )
        raise ProfileError(f"no row could be read: {reasons}", code="missing_field")
    refused = sum(len(log.refused) for _, log in logs)
    tables = [build_table(raw) for raw in _raw_rows(rows)]
    messages += [f"{len(rows)} rows read, {refused} lines refused"]
    device = next((log.device for _, log in logs if log.device), None)
    document = ProfileDocument(
        name=name or _slug(logs[0][0].stem),
        device=Device(name=device or "unknown device", gpus_per_node=_gpus_per_node(rows)),
        provenance=[
            Provenance(
                id="logs",
                title="nccl-tests logs",
                licence="as given by their owner",
                files=[path.name for path, _ in logs],
                note=f"{refused} lines refused",
            )
        ],
        tables=sorted(tables, key=lambda table: table.key),
    )
    return document, messages


def _reasons(refused: Iterable[str]) -> list[str]:
    """Up to three different reasons, each where it first occurs: what the user can mend, then what occurs most often;
    rows of size 0 are in most logs and come last."""
    count: Counter[str] = Counter()
    place: dict[str, str] = {}
    for line in refused:
        reason = _PLACE.sub("", line)
        count[reason] += 1
        place.setdefault(reason, line)
    order = sorted(count, key=lambda reason: (reason == SIZE_0, NAMELESS not in reason, -count[reason]))
    return [place[reason] + (f" ({count[reason]} lines)" if count[reason] > 1 else "") for reason in order[:3]]


def _split(text: str) -> tuple[str | None, str]:
    named = _PATH.match(text)
    if named and named.group(1) in OPERATIONS.values() and not Path(text).exists():
        return named.group(1), named.group(2)
    return None, text


def _read(path: str, operation: str | None) -> Log:
    place = Path(path)
    try:
        data = read_limited(place)
    except OSError as error:
        raise ProfileError(
            f"cannot read {shown(place.name)}: {error.strerror}", code="missing_field", where=path
        ) from None
    refuse_placeholder(data, place.name)
    return read_log(data.decode("utf-8", errors="replace"), place.name, operation)


def _raw_rows(rows: list[LogRow]) -> list[RawRows]:
    out = []
    keys = sorted({(row.operation, row.dtype) for row in rows})
    for operation, dtype in keys:
        mine = [row for row in rows if (row.operation, row.dtype) == (operation, dtype)]
        out.append(_raw(operation, dtype, "nccl", mine, [row.out_of_place_us for row in mine]))
        inside = [row for row in mine if row.in_place_us is not None]
        if inside:
            times = [row.in_place_us for row in inside if row.in_place_us is not None]
            out.append(_raw(operation, dtype, "nccl_in_place", inside, times))
    return out


def _raw(operation: str, dtype: str, backend: str, rows: list[LogRow], microseconds: list[float]) -> RawRows:
    columns = {
        "nodes": np.array([row.nodes for row in rows], dtype=np.int64),
        "ranks": np.array([row.ranks for row in rows], dtype=np.int64),
        "message_bytes": np.array([row.message_bytes for row in rows], dtype=np.int64),
    }
    policy = ("out-of-place columns" if backend == "nccl" else "in-place columns", "rows of size 0 are refused")
    return RawRows(
        operation, dtype, columns, np.array(microseconds) * 1e-6, "logs", ("NCCL",), backend=backend, policy=policy
    )


def _gpus_per_node(rows: list[LogRow]) -> int | None:
    shapes = {row.ranks / row.nodes for row in rows}
    return int(shapes.pop()) if len(shapes) == 1 and next(iter(shapes)).is_integer() else None


def _slug(text: str) -> str:
    slug = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")
    return slug[:100] or "imported"
