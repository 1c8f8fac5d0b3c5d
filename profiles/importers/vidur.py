"""Vidur's profiling tables (CSV): a model's products and element-wise operations by tokens, and collectives by size.

Times are milliseconds; the median over the source's repetitions is read. All of it was measured in fp16
(vidur/profiling/mlp/mlp_wrapper.py and vidur/profiling/collectives/collectives_impl.py of microsoft/vidur).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from profiles.document import Device, Provenance
from profiles.errors import ProfileError, shown
from profiles.families import COLLECTIVES
from profiles.importers.assembly import Found, Imported, Options, assemble, known_families
from profiles.importers.foreign import as_text, read_file, refuse_other
from profiles.importers.vidur_rows import COLLECTIVE_COLUMNS, MODEL_COLUMNS, Row, collective_row, model_rows
from profiles.making.building import RawRows

FAMILIES = ("gemm", "elementwise", *COLLECTIVES)
_POLICY = {
    "gemm": "n and k are those of one rank, from the model's sizes and the tensor-parallel ranks",
    "elementwise": "width is that of one rank's output; where tensor parallelism leaves it whole (norms, add, "
    "embedding) rows of different numbers of ranks are repeats",
}
_KERNEL = "time of the NCCL kernel alone: its launch is not in it; ranks / devices per node are the nodes"
_FOLDER = re.compile(r"^(?:compute|network)$")


def import_tables(files: Sequence[str], options: Options) -> Imported:
    """One profile from Vidur's `mlp.csv`, `all_reduce.csv`, `send_recv.csv` and their like, of one device.

    Raises `ProfileError` if no row is left, for a file of another kind, and for files of two devices.
    """
    known_families(options.families, FAMILIES)
    rows: list[Row] = []
    refused: list[str] = []
    gpus_per_node: set[int] = set()
    for path in files:
        own, wrong, sizes = _read(path)
        rows += own
        refused += wrong
        gpus_per_node |= sizes
    device = _device(files)
    found = Found(
        rows=_tables(rows),
        device=Device(
            name=device or "unknown device",
            gpus_per_node=gpus_per_node.pop() if len(gpus_per_node) == 1 else None,
        ),
        provenance=Provenance(
            id="vidur",
            title="Vidur profiling tables",
            licence="as given by their owner (microsoft/vidur: MIT)",
            files=[Path(path).name for path in files],
            note=f"{len(refused)} lines refused",
        ),
        notes=["the tables do not state their precision: Vidur's profilers run in fp16"],
        refused=refused,
    )
    return assemble(found, f"vidur-{device}" if device else "vidur", options)


def _read(path: str) -> tuple[list[Row], list[str], set[int]]:
    data, name = read_file(path), Path(path).name
    refuse_other(data, name, "vidur")
    reader = csv.reader(io.StringIO(as_text(data, name, "vidur")), strict=True)
    try:
        header = next(reader)
        lines = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except (csv.Error, StopIteration) as error:
        raise ProfileError(f"{shown(name)} is not a CSV table: {error}", code="wrong_type") from None
    missing = _missing(header)
    if missing:
        raise ProfileError(
            f"{shown(name)} is none of Vidur's tables that are read (products of a model, collectives): "
            f"it lacks the column {missing}",
            code="missing_field",
        )
    rows: list[Row] = []
    refused: list[str] = []
    sizes: set[int] = set()
    for number, cells in lines:
        try:
            values = _values(header, cells)
            if "collective" in values:
                row, most = collective_row(values)
                rows.append(row)
                sizes.add(most)
            else:
                rows += model_rows(values)
        except ValueError as error:
            refused.append(f"{name}:{number}: {error}")
    return rows, refused, sizes


def _missing(header: Sequence[str]) -> str | None:
    needed = COLLECTIVE_COLUMNS if "collective" in header else MODEL_COLUMNS
    return next((column for column in needed if column not in header), None)


def _values(header: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    if len(cells) != len(header):
        raise ValueError(f"expected {len(header)} cells as in the header, got {len(cells)}")
    return dict(zip(header, cells, strict=True))


def _tables(rows: list[Row]) -> list[RawRows]:
    tables: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        tables.setdefault((row.family, row.backend, row.workload), []).append(row)
    return [
        RawRows(
            family, "fp16",
            {axis: np.array([row.axes[axis] for row in own], dtype=np.int64) for axis in own[0].axes},
            np.array([row.seconds for row in own]), "vidur", backend=backend, workload=workload,
            policy=(_POLICY.get(family, _KERNEL),),
        )
        for (family, backend, workload), own in sorted(tables.items())
    ]  # fmt: skip


def _device(files: Sequence[str]) -> str | None:
    """The device by the folder that Vidur keeps a table in (compute/a100/..., network/a100_dgx/...), if it is there."""
    names = set()
    for path in files:
        parts = Path(path).parts
        names |= {parts[at + 1].split("_")[0] for at, part in enumerate(parts[:-2]) if _FOLDER.match(part)}
    if len(names) > 1:
        raise ProfileError(
            f"the files lie in folders of several devices ({', '.join(sorted(names))}): import one device at a time",
            code="out_of_range",
            where="files",
        )
    return next((name for name in names if re.fullmatch(r"[a-z0-9.-]+", name)), None)
