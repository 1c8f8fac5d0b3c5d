"""The 288 operators of the Compass page, section 6: two ops, two topologies, three degrees, four models, six lengths.

The list and its prices are the project's own; the paper gives their number alone.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from planner.papers.compass.ring import fused_s, hop_s, shard_gemm_s

OPS = ("ag_gemm", "gemm_rs")
BANDWIDTHS = {"nvlink": 50e9, "hybrid": 20e9}
"""Bytes per second of the slowest link of the ring."""
LIBRARY_SHARE = {"nvlink": 1.0, "hybrid": 0.8}
"""What of it an unfused library collective gets."""
RANKS = (2, 4, 8)
MODELS = ((4096, 11008), (5120, 13824), (8192, 28672), (12288, 49152))
"""Hidden and feed-forward sizes."""
TOKENS = (256, 1024, 4096, 8192, 16384, 32768)

FLOPS = 110e12
FUSED = {"single_ring": (1, 1.12), "double_ring": (2, 1.25)}
"""Directions, and how much slower the GEMM is in the fused kernel."""


def grid_document() -> dict[str, Any]:
    """The 288 operators as one problem; every id says op, topology, ranks, hidden size and tokens."""
    cells = product(OPS, BANDWIDTHS, RANKS, MODELS, TOKENS)
    return {"paper": "compass", "format_version": "1.0", "operators": [_operator(*cell) for cell in cells]}


def _operator(op: str, topology: str, p: int, model: tuple[int, int], tokens: int) -> dict[str, Any]:
    hidden, ffn = model
    bandwidth, payload_bytes = BANDWIDTHS[topology], 2.0 * tokens * hidden
    gemm_s = 2.0 * tokens * hidden * ffn / p / FLOPS
    fused = []
    for name, (directions, slowdown) in FUSED.items():
        shard_s = shard_gemm_s(gemm_s, p, slowdown, tile_s=6e-6)
        hop = hop_s(payload_bytes, p, bandwidth, latency_s=3e-6, directions=directions)
        fused.append({"id": name, "time_s": fused_s(p, shard_s, hop)})
    return {
        "id": f"{op}/{topology}/p{p}/h{hidden}/m{tokens}",
        "op": op,
        "tp_size": p,
        "split_extent": tokens,
        "split_multiple": 128,
        "max_degree": 32,
        "comm": {
            "startup_s": 20e-6 + 4e-6 * (p - 1),
            "payload_s": (p - 1) / p * payload_bytes / (bandwidth * LIBRARY_SHARE[topology]),
        },
        "gemm": {"startup_s": 12e-6, "payload_s": gemm_s},
        "contention": {"comm": 1.10, "gemm": 1.06},
        "fused": fused,
    }
