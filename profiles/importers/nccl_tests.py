"""nccl-tests and rccl-tests text logs: collective rows with their ranks and nodes.

The out-of-place columns become backend `nccl` (or `rccl`, by what the log says of itself), the in-place columns
`nccl_in_place`: they differ, and which of them a program meets depends on its buffers. The printed average bandwidth
mixes all sizes and is never read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from profiles.document import Device, Provenance
from profiles.errors import ProfileError
from profiles.importers.assembly import Found, Imported, Options, assemble, known_families, slug
from profiles.importers.foreign import as_text, looks_like, read_file
from profiles.importers.nccl_log import NAMELESS, OPERATIONS, Log, LogRow, read_log
from profiles.importers.nccl_rows import SIZE_0
from profiles.making.building import RawRows

_PATH = re.compile(r"^([a-z_]+)=(.+)$")


def import_logs(files: Sequence[str], options: Options, library: str = "nccl") -> Imported:
    """One profile from logs, each given as PATH or OPERATION=PATH.

    `library` is what a log measured that does not say whether it is of nccl or rccl.
    Raises `ProfileError` (missing_field) if no row is left; the message then holds the first reasons.
    """
    known_families(options.families, sorted(OPERATIONS.values()))
    logs = [(Path(path).name, _read(path, operation)) for operation, path in map(_split, files)]
    device = next((log.device for _, log in logs if log.device), None)
    rows = [(log.library or library, row) for _, log in logs for row in log.rows]
    refused = [line for _, log in logs for line in log.refused]
    names = sorted({name for name, _ in rows})
    notes = [line for _, log in logs for line in log.remarks]
    notes += [
        f"{name}: it says of itself that it is of {log.library}"
        for name, log in logs
        if log.library not in (None, library)
    ]
    found = Found(
        rows=_raw_rows(rows),
        device=Device(name=device or "unknown device", gpus_per_node=_gpus_per_node([row for _, row in rows])),
        provenance=Provenance(
            id="logs",
            title=f"{' and '.join(names) or library}-tests logs",
            licence="as given by their owner",
            files=[name for name, _ in logs],
            note=f"{len(refused)} lines refused",
        ),
        notes=notes,
        refused=refused,
    )
    # First what the user can mend; rows of size 0 are in most logs and come last.
    return assemble(found, slug(logs[0][0]), options, lambda reason: 1 - (NAMELESS in reason) + (reason == SIZE_0))


def _split(text: str) -> tuple[str | None, str]:
    named = _PATH.match(text)
    if named and named.group(1) in OPERATIONS.values() and not Path(text).exists():
        return named.group(1), named.group(2)
    return None, text


def _read(path: str, operation: str | None) -> Log:
    data, name = read_file(path), Path(path).name
    log = read_log(as_text(data, name, "nccl-tests"), name, operation)
    if not log.rows and (other := looks_like(data, "nccl-tests")):
        raise ProfileError(f"no line of {name} looks like a row of nccl-tests{other}", code="missing_field")
    return log


def _raw_rows(rows: list[tuple[str, LogRow]]) -> list[RawRows]:
    out = []
    for library, operation, dtype in sorted({(name, row.operation, row.dtype) for name, row in rows}):
        mine = [row for name, row in rows if (name, row.operation, row.dtype) == (library, operation, dtype)]
        out.append(_raw(operation, dtype, library, mine, [row.out_of_place_us for row in mine]))
        inside = [row for row in mine if row.in_place_us is not None]
        if inside:
            times = [row.in_place_us for row in inside if row.in_place_us is not None]
            out.append(_raw(operation, dtype, f"{library}_in_place", inside, times))
    return out


def _raw(operation: str, dtype: str, backend: str, rows: list[LogRow], microseconds: list[float]) -> RawRows:
    columns = {
        "nodes": np.array([row.nodes for row in rows], dtype=np.int64),
        "ranks": np.array([row.ranks for row in rows], dtype=np.int64),
        "message_bytes": np.array([row.message_bytes for row in rows], dtype=np.int64),
    }
    library, _, place = backend.partition("_")
    policy = ("in-place columns" if place else "out-of-place columns", "rows of size 0 are refused")
    seconds = np.array(microseconds) * 1e-6
    return RawRows(operation, dtype, columns, seconds, "logs", (library.upper(),), backend=backend, policy=policy)


def _gpus_per_node(rows: list[LogRow]) -> int | None:
    shapes = {row.ranks / row.nodes for row in rows}
    return int(shapes.pop()) if len(shapes) == 1 and next(iter(shapes)).is_integer() else None
