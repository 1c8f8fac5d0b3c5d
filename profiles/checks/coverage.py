"""What a Zellige problem asks of a profile (docs/profiles.md) and this one has not."""

from __future__ import annotations

from profiles.checks.finding import Finding
from profiles.document import ProfileDocument
from profiles.geometry import find_geometry, geometry_names

COLLECTIVES = ("all_gather", "reduce_scatter", "all_to_all")
"""Splits by queries, keys and heads; backend nccl inside one node."""


def uncovered(document: ProfileDocument) -> list[Finding]:
    """Notes on families, head dimensions, ranks and device numbers that no table has."""
    families = {table.family for table in document.tables}
    found = []
    if "gemm" not in families:
        found.append(_note("tables", "no gemm table", "one, at the problem's dtype", "refused: measure products"))
    measured = {d for table in document.tables for d in table.columns.get("head_dim", ())
                if table.family == "encoder_attention"}  # fmt: skip
    wanted: dict[int, list[str]] = {}
    for name in geometry_names():
        wanted.setdefault(find_geometry(name).head_dim, []).append(name)
    for head_dim, models in sorted(wanted.items()):
        if head_dim not in measured:
            what = f"no encoder_attention rows at head_dim {head_dim}, which {len(models)} built-in models have"
            fix = "composed from other head dimensions or prefill_attention under roofline, else refused"
            found.append(_note("tables", what, f"rows at head_dim {head_dim}", fix))
    width = document.device.gpus_per_node
    for family in COLLECTIVES:
        found += _collective(document, family, width)
    if document.device.memory_bytes is None:
        where, fix = "device.memory_bytes", "state it, or derive.memory.capacity_bytes in each problem"
        found.append(_note(where, "the memory of the device is not stated", "bytes", fix))
    return found


def _collective(document: ProfileDocument, family: str, width: int | None) -> list[Finding]:
    rows = [
        ranks
        for table in document.tables
        if (table.family, table.backend) == (family, "nccl")
        for nodes, ranks in zip(table.columns["nodes"], table.columns["ranks"], strict=True)
        if nodes == 1
    ]
    need = f"2 to {width} ranks of one node, backend nccl" if width else "ranks of one node, backend nccl"
    fix = "splits inside a node are refused, also under roofline: measure them"
    if not rows:
        return [_note("tables", f"no {family} rows on one node with backend nccl", need, fix)]
    low, high = min(rows), max(rows)
    if low > 2 or (width is not None and high < width):
        return [
            _note(
                "tables", f"{family} was measured on {low if low == high else f'{low} to {high}'} ranks only", need, fix
            )
        ]
    return []


def _note(where: str, what: str, expected: str, fix: str) -> Finding:
    return Finding("not_covered", "note", "", where, what, expected, fix)
