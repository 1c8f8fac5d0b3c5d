"""The page's problem X (section 6) and the golden cases made of it (section 10), as documents."""

from __future__ import annotations

import copy
from typing import Any

from planner.papers.layout.formulation import Enumerated, enumerate_all
from planner.papers.layout.problem import LayoutProblem
from planner.validation import validate

Document = dict[str, Any]


def row(kind: str, **changes: Any) -> Document:
    """A row of X: dense layers of 1 + 2 s and 1e9 parameters that keep 1e9 bytes; nothing for the ends."""
    empty = dict.fromkeys(
        ("forward_s", "backward_s", "comm_forward_s", "comm_backward_s", "selective_s", "params", "expert_params"), 0.0
    )
    empty |= dict.fromkeys(("kept_bytes", "selective_bytes", "input_bytes"), 0.0)
    degrees = {"tp": 1, "cp": 1, "sp": False, "micro_batch": 1}
    layer = {
        "forward_s": 1,
        "backward_s": 2,
        "params": 1e9,
        "kept_bytes": 1e9,
        "selective_bytes": 8e8,
        "input_bytes": 1e8,
    }
    return {"kind": kind} | degrees | empty | (layer if kind in ("dense", "moe") else {}) | changes


def x(**changes: Any) -> Document:
    """X with other values by path, ``cluster__num_gpus=2``; ``rows`` stands for costs__rows."""
    document: Document = {
        "paper": "layout",
        "format_version": "1.0",
        "launcher_rules": "none",
        "objective": "step_time",
        "cluster": {"num_gpus": 4, "gpus_per_node": 4, "gpu_memory_bytes": 80e9, "reserve_bytes": 0},
        "batch": {"global_batch_size": 8, "sequence_length": 1024},
        "model": {
            "layers": [{"kind": "dense", "count": 4}],
            "num_heads": 8,
            "num_kv_heads": 8,
            "num_experts": 0,
        },
        "search": {"pp": [1, 2, 4], "zero_stage": [0]},
        "costs": {
            "rows": [row("dense"), row("embedding"), row("head")],
            "collectives": {
                "intra": {"alpha_s": 0, "beta_s_per_byte": 1e-10},
                "inter": {"alpha_s": 0, "beta_s_per_byte": 1e-9},
            },
            "p2p": {"intra": {"alpha_s": 0, "beta_s_per_byte": 0}, "inter": {"alpha_s": 0, "beta_s_per_byte": 0}},
            "boundary_bytes_per_sample": 0,
            "bytes_per_param": {"param": 2, "grad": 4, "optimizer": 12},
            "comm_bytes": {"param": 2, "grad": 4},
            "optimizer_s_per_param": 0,
            "overlap": {"dp": 0, "p2p": 0},
            "fixed_s": 0,
        },
    }
    for path, value in changes.items():
        *folders, name = ("costs__rows" if path == "rows" else path).split("__")
        place = document
        for folder in folders:
            place = place[folder]
        place[name] = value
    return document


def layers(count: int, kind: str = "dense") -> list[Document]:
    """One run of layers."""
    return [{"kind": kind, "count": count}]


def problem(document: Document) -> LayoutProblem:
    """Validated, in canonical form."""
    return validate(LayoutProblem, copy.deepcopy(document)).sorted()


def enumerated(document: Document) -> Enumerated:
    """All its layouts."""
    return enumerate_all(problem(document))


def _wide_rows() -> list[Document]:
    """G6: half of all at tp 2, with 0.1 s of traffic each way; 1.8 times the seconds and twice the bytes at b 2."""
    rows = []
    for tp in (1, 2):
        for b in (1, 2):
            degrees = {"tp": tp, "micro_batch": b}
            forward = {1: 1.0, 2: 1.8}[b] / tp
            traffic = 0.1 * b * (tp - 1)
            held = {"params": 1e9 / tp, "kept_bytes": 1e9 * b / tp, "selective_bytes": 8e8 * b / tp}
            spent = {"forward_s": forward, "backward_s": 2 * forward}
            sent = {"comm_forward_s": traffic, "comm_backward_s": traffic}
            rows.append(row("dense", **degrees, **held, **spent, **sent, input_bytes=1e8 * b / tp))
            rows += [row("embedding", **degrees), row("head", **degrees)]
    return rows


def _expert_rows() -> list[Document]:
    """G8."""
    experts = [
        row(
            "moe",
            ep=e,
            etp=1,
            forward_s=1 + 0.05 * (e - 1),
            backward_s=2 + 0.1 * (e - 1),
            params=2e8,
            expert_params=2e9 / e,
        )
        for e in (1, 2, 4)
    ]
    return [*experts, row("embedding"), row("head")]


G1 = x()
G2 = x(
    model__layers=layers(16),
    rows=[row("dense", params=1e8), row("embedding"), row("head")],
    search={"pp": [4], "vpp": [1, 2, 4]},
)
G3 = x(
    cluster__num_gpus=2,
    cluster__gpus_per_node=2,
    model__layers=layers(8),
    rows=[
        row("dense", params=1e8),
        row("embedding"),
        row("head", forward_s=2, backward_s=4, params=1e9, kept_bytes=5e8),
    ],
    search={"pp": [2], "partitions": ["even", "ends"]},
)
G4 = x(
    batch__global_batch_size=32,
    cluster__gpu_memory_bytes=40e9,
    rows=[row("dense", kept_bytes=6e9, selective_bytes=6e9, input_bytes=5e8), row("embedding"), row("head")],
    search={"pp": [1], "zero_stage": [0, 1, 2, 3], "recompute": ["none", "full"]},
)
G6 = x(
    batch__global_batch_size=6,
    rows=_wide_rows(),
    search={"tp": [1, 2], "pp": [1, 2], "micro_batch": [1, 2], "zero_stage": [1]},
)
G7 = x(
    batch__global_batch_size=6,
    rows=[row(kind, micro_batch=4) for kind in ("dense", "embedding", "head")],
    search={"pp": [1], "micro_batch": [4], "zero_stage": [1]},
)
G8 = x(
    batch__global_batch_size=16,
    cluster__gpu_memory_bytes=46e9,
    model={"layers": layers(4, "moe"), "num_heads": 8, "num_kv_heads": 8, "num_experts": 4},
    rows=_expert_rows(),
    search={"pp": [1, 2], "ep": [1, 2, 4], "zero_stage": [1]},
)
