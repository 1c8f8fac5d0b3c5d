"""Makes the built-in profiles: `python -m profiles.builtin [FOLDER]` (needs the aiconfigurator extra).

The same source gives the same bytes. The reduction: encoder attention and collectives keep every rising row; GEMM and
the other families drop rows that their neighbours give back within a tolerance; MoE keeps whole experts (no tensor
split) under two routing distributions; head dimensions 64 and 128; four significant digits.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from profiles.files import write_document
from profiles.importers.aiconfigurator import Reduction, chosen_rows, import_system
from profiles.making.building import RawRows

SYSTEMS = ("a100_sxm", "b200_sxm", "h100_sxm", "h200_sxm", "l40s")
TOLERANCE = {"gemm": 0.02, "prefill_attention": 0.04, "decode_attention": 0.04, "moe_gemm": 0.04}
WORKLOADS = ("", "balanced", "power_law_1.2")
BACKENDS = ("", "nccl", "vllm_eager", "vllm_graph")


def kept_rows(raw: RawRows) -> RawRows | None:
    """The rows of a table that the built-in profiles keep, None if they keep none."""
    if raw.workload not in WORKLOADS or raw.backend not in BACKENDS:
        return None
    if raw.family == "moe_gemm":
        return _only(raw, raw.columns["tensor_ranks"] == 1, "whole experts only (tensor_ranks 1)")
    if raw.family in ("prefill_attention", "decode_attention"):
        return _only(raw, np.isin(raw.columns["head_dim"], (64, 128)), "head_dim 64 and 128 only")
    return raw


def _only(raw: RawRows, rows: np.ndarray[tuple[int], np.dtype[np.bool_]], rule: str) -> RawRows | None:
    if not rows.any():
        return None
    columns = {axis: column[rows] for axis, column in raw.columns.items()}
    return replace(raw, columns=columns, seconds=raw.seconds[rows], policy=(*raw.policy, rule))


REDUCTION = Reduction(TOLERANCE, 4, kept_rows)


def built_in_rows(system: str) -> list[RawRows]:
    """The rows of the built-in profile of `system` as they were read, before repeats are merged and any is left out."""
    families = {family for family, _ in REDUCTION.tables}
    rows = (raw for raw in chosen_rows(system, families) if (raw.family, raw.dtype) in REDUCTION.tables)
    return [kept for raw in rows if (kept := kept_rows(raw)) is not None]


def main(folder: Path) -> None:
    """Write every built-in profile into `folder`, talking on stderr."""
    for system in SYSTEMS:
        document, messages = import_system(system, reduction=REDUCTION)
        write_document(document, folder / f"{document.name}.json")
        sys.stderr.write("".join(f"{document.name}: {line}\n" for line in messages if "not used:" not in line))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "tables")
