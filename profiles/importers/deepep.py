"""DeepEP's published tables (CSV or Markdown): latency of the low-latency kernels becomes rows.

The table of the low-latency kernels gives microseconds by number of ranks. Its setting stands in the text above it
(DeepEP v1.2.1, README): 128 tokens a rank, 7,168 hidden, top-8, fp8 dispatch, bf16 combine, 8 GPUs a node. So a rank
moves 128 x 8 x 7,408 bytes (7,168 fp8, 56 scales of 4 bytes, 16 bytes of header) there and 128 x 8 x 14,336 back, and
bytes / latency must give the bandwidth printed beside it: a row where it does not is refused.

The tables of the normal kernels give bandwidths alone. Their bytes depend on how many different ranks (and nodes) each
token's experts lie on, which the setting does not say, and the newer table counts traffic that stays on its rank: no
time follows from them, so they are refused.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profiles.document import Device, Provenance
from profiles.importers.assembly import Found, Imported, Options, assemble, known_families, slug
from profiles.importers.foreign import as_text, read_file, refuse_other
from profiles.making.building import RawRows

FAMILIES = ("moe_dispatch", "moe_combine")
TOKENS, HIDDEN, TOP_K, EXPERTS, GPUS_PER_NODE = 128, 7168, 8, 256, 8
BYTES = {"moe_dispatch": TOKENS * TOP_K * (HIDDEN + HIDDEN // 128 * 4 + 16), "moe_combine": TOKENS * TOP_K * HIDDEN * 2}
SETTING = (
    f"the table does not state its setting, DeepEP's README does: H800, {TOKENS} tokens a rank, hidden {HIDDEN}, "
    f"top-{TOP_K}, {GPUS_PER_NODE} GPUs a node",
    f"{EXPERTS} experts are assumed, as in DeepSeek-V3: neither states them",
)
_CELL = re.compile(r"^([0-9]+(?:\.[0-9]+)?)\s*(us|GB/s)(?:\s*\((RDMA|NVLink)\))?$")
_NO_TIME = (
    "a bandwidth alone gives no time: the bytes of the normal kernels depend on how many ranks each token's experts "
    "lie on, which the table does not say"
)
_LOGICAL = f"{_NO_TIME}; and this table's bandwidth is logical, it counts traffic that never leaves its rank"
# Bandwidths are printed as whole GB/s and latencies as whole us: half a unit each, and the source's own rounding.
_TOLERANCE = 0.03


@dataclass(frozen=True)
class _Exchange:
    family: str
    ranks: int
    microseconds: float


def import_tables(files: Sequence[str], options: Options) -> Imported:
    """One profile from the tables in `files`. Raises `ProfileError` (missing_field) if no row gives a time."""
    known_families(options.families, FAMILIES)
    rows: list[_Exchange] = []
    refused: list[str] = []
    for path in files:
        data, name = read_file(path), Path(path).name
        refuse_other(data, name, "deepep")
        own, wrong = _table(as_text(data, name, "deepep"), name)
        rows += own
        refused += wrong
    found = Found(
        rows=[_raw(family, [row for row in rows if row.family == family]) for family in FAMILIES],
        device=Device(name="NVIDIA H800", gpus_per_node=GPUS_PER_NODE),
        provenance=Provenance(
            id="deepep",
            title="DeepEP performance tables",
            licence="as given by their owner (deepseek-ai/DeepEP: MIT)",
            files=[Path(path).name for path in files],
            note="; ".join((*SETTING, f"{len(refused)} lines refused")),
        ),
        notes=SETTING,
        refused=refused,
    )
    return assemble(found, f"deepep-{slug(files[0])}"[:100], options)


def _table(text: str, name: str) -> tuple[list[_Exchange], list[str]]:
    rows: list[_Exchange] = []
    refused: list[str] = []
    header: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        cells = _cells(line)
        if not line.strip():
            header = []  # a table ends; prose may follow
        if len(cells) < 4 or all(set(cell) <= set("-: ") for cell in cells):
            continue
        if any("bandwidth" in cell.lower() for cell in cells):
            header = cells
        elif header:
            try:
                rows += _exchanges(header, cells)
            except ValueError as error:
                refused.append(f"{name}:{number}: {error}")
    return rows, refused


def _cells(line: str) -> list[str]:
    """The cells of a line of CSV or of a Markdown table; none for prose, whose commas could pass for cells."""
    line = line.strip()
    if line.startswith("|"):
        return [cell.strip() for cell in line.strip("|").split("|")]
    cells = next(csv.reader([line]), [])
    return [cell.strip() for cell in cells] if all(len(cell) <= 60 for cell in cells) else []


def _exchanges(header: Sequence[str], cells: Sequence[str]) -> list[_Exchange]:
    if len(cells) != len(header):
        raise ValueError(f"expected {len(header)} cells as in the header, got {len(cells)}")
    names = [name.lower() for name in header]
    if "latency" not in names:
        raise ValueError(_LOGICAL if "topo" in names else _NO_TIME)
    if len(names) != 6 or names[0] != "dispatch #ep" or names[3] != "combine #ep":
        raise ValueError(
            "expected the columns Dispatch #EP, Latency, RDMA bandwidth, Combine #EP, Latency, RDMA bandwidth"
        )
    return [_exchange(family, *cells[at : at + 3]) for family, at in (("moe_dispatch", 0), ("moe_combine", 3))]


def _exchange(family: str, ranks: str, latency: str, bandwidth: str) -> _Exchange:
    if not ranks.isascii() or not ranks.isdigit() or not 0 < int(ranks[:6]) <= 65536 or int(ranks) % GPUS_PER_NODE:
        raise ValueError(f"expected #EP as a multiple of {GPUS_PER_NODE} ranks, got {ranks!r:.40}")
    microseconds, rate = _value(latency, "us"), _value(bandwidth, "GB/s")
    given = BYTES[family] / microseconds / 1e3
    if abs(given / rate - 1) > _TOLERANCE + 0.5 / rate + 0.5 / microseconds:
        raise ValueError(
            f"{BYTES[family]} bytes in {latency} are {given:.0f} GB/s, not the {bandwidth} stated: another setting "
            f"than {TOKENS} tokens, hidden {HIDDEN}, top-{TOP_K}"
        )
    return _Exchange(family, int(ranks), microseconds)


def _value(cell: str, unit: str) -> float:
    found = _CELL.match(cell)
    if not found or found.group(2) != unit or float(found.group(1)) <= 0:
        raise ValueError(f"expected a number of {unit}, got {cell!r:.40}")
    return float(found.group(1))


def _raw(family: str, rows: list[_Exchange]) -> RawRows:
    ranks = np.array([row.ranks for row in rows], dtype=np.int64)
    one = np.ones_like(ranks)
    columns = {
        "nodes": ranks // GPUS_PER_NODE,
        "hidden": one * HIDDEN,
        "experts": one * EXPERTS,
        "top_k": one * TOP_K,
        "ranks": ranks,
        "tokens": one * TOKENS,
    }
    seconds = np.array([row.microseconds for row in rows], dtype=np.float64) * 1e-6
    dtype = "fp8" if family == "moe_dispatch" else "bf16"
    return RawRows(
        family, dtype, columns, seconds, "deepep", ("deepep",), backend="deepep_low_latency",
        policy=(*SETTING, "tokens are those of one rank; microseconds, as printed"),
    )  # fmt: skip
