"""nvbandwidth's matrices of copy bandwidth, as text or `--format json`: one row a test, the median over its pairs.

A cell is the GB/s (1e9) of one pair; its time is the buffer's bytes over that. The output states the
buffer nowhere: 64 MiB was the default of early versions and 512 MiB is that of later ones, so the user says which.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profiles.document import Device, Provenance
from profiles.errors import ProfileError
from profiles.importers.assembly import Found, Imported, Options, assemble, known_families, slug
from profiles.importers.foreign import as_text, read_file, refuse_other
from profiles.importers.nvbandwidth_log import Matrix, read_json, read_text
from profiles.making.building import RawRows
from profiles.table import LARGEST_AXIS_VALUE

_TEST = re.compile(r"^(?P<what>[a-z_]+?)_(?:memcpy_)?(?P<way>read_|write_)?(?P<engine>ce|sm)$")
_LOCAL = re.compile(r"^device_local_copy$")


@dataclass(frozen=True)
class _Copies:
    workload: str
    engine: str
    gigabytes_per_s: tuple[float, ...]


def import_outputs(files: Sequence[str], options: Options) -> Imported:
    """One profile from outputs of nvbandwidth on one machine.

    Raises `ProfileError` if the buffer's size is neither stated nor given, or if no matrix can be read.
    """
    known_families(options.families, ("memory_copy",))
    size = options.buffer_bytes
    if size is None:
        raise ProfileError(
            "nvbandwidth does not write down how large the copied buffer was: give --buffer-bytes "
            f"({512 << 20} is the default of later versions, {64 << 20} of early ones)",
            code="missing_field",
            where="buffer_bytes",
        )
    if not 1 <= size <= LARGEST_AXIS_VALUE:
        raise ProfileError(
            f"expected buffer_bytes in 1..{LARGEST_AXIS_VALUE}, got {size}", code="out_of_range", where="buffer_bytes"
        )
    copies: list[_Copies] = []
    refused: list[str] = []
    notes: list[str] = []
    device = None
    for path in files:
        data, name = read_file(path), Path(path).name
        refuse_other(data, name, "nvbandwidth")
        output = (
            read_json(data, name) if data.lstrip()[:1] == b"{" else read_text(as_text(data, name, "nvbandwidth"), name)
        )
        device = device or output.device
        refused += output.refused
        notes += output.remarks
        for matrix in output.matrices:
            try:
                copies.append(_copies(matrix))
            except ValueError as error:
                refused.append(f"{matrix.place}: {matrix.test}: {error}")
    found = Found(
        rows=_tables(copies, size),
        device=Device(name=device or "unknown device"),
        provenance=Provenance(
            id="nvbandwidth",
            title="nvbandwidth output",
            licence="as given by their owner",
            files=[Path(path).name for path in files],
            note=f"{len(refused)} lines refused",
        ),
        notes=notes,
        refused=refused,
    )
    return assemble(found, slug(files[0]), options)


def _copies(matrix: Matrix) -> _Copies:
    """What a matrix measured. Raises `ValueError` if its cells are not the bandwidth of one copy."""
    test = _TEST.match(matrix.test)
    if _LOCAL.match(matrix.test):
        what, way, engine = "device_local", "", "ce"
    elif test is None or "latency" in matrix.test:
        raise ValueError("no test of copies: the time of one access, or a test that is not known")
    else:
        what, way, engine = test["what"], (test["way"] or "").rstrip("_"), test["engine"]
    if "(GB/s)" not in matrix.title:
        raise ValueError(f"expected a bandwidth in GB/s, got {matrix.title!r:.80}")
    if "Total" in matrix.title:
        raise ValueError("the sum of both directions is not the time of one copy")
    if (
        engine == "sm"
        and what == "device_to_device_bidirectional"
        and not re.search(r"(?:Read|Write)[12]", matrix.title)
    ):
        raise ValueError("the kernels' figure sums both directions: it is not the time of one copy")
    cells = tuple(cell for cell in matrix.cells if cell is not None)
    if not cells:
        raise ValueError("no pair was measured")
    return _Copies(what + (f"_{way}" if way else ""), engine, cells)


def _tables(copies: list[_Copies], size: int) -> list[RawRows]:
    rates: dict[tuple[str, str], list[float]] = {}
    for copy in copies:
        rates.setdefault((copy.engine, copy.workload), []).extend(copy.gigabytes_per_s)
    kinds = {"ce": "copy engine", "sm": "copy kernel"}
    policy = (
        "the pairs of a matrix are repeats of one copy: their median is kept",
        f"a buffer of {size} bytes, as told",
    )
    return [
        RawRows(
            "memory_copy", "int8", {"message_bytes": np.full(len(own), size, dtype=np.int64)},
            size / 1e9 / np.array(own), "nvbandwidth", (kinds[engine],), backend=engine, workload=workload,
            policy=policy,
        )
        for (engine, workload), own in sorted(rates.items())
    ]  # fmt: skip
