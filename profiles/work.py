"""The arithmetic and the traffic that a row cannot do without, by family: what it would cost on an ideal device.

Formulas only: nothing here is fitted. FLOPs count a multiply-add as two; bytes are each operand read once and each
result written once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from profiles.families import COLLECTIVES
from profiles.roofline import wire_bytes

Floats = npt.NDArray[np.float64]
Axes = Mapping[str, Floats]


def compute_dtype(dtype: str) -> str:
    """What arithmetic is done in: `fp8_block` and `bf16_kv_fp8` name first what is multiplied, then what is stored."""
    return dtype.partition("_")[0]


def flops(family: str, axes: Axes) -> Floats | None:
    """FLOPs of each row, None for families that move data only. Causal attention does half of the square."""
    formula = _FLOPS.get(family)
    return None if formula is None else np.asarray(formula(axes), dtype=np.float64)


def memory_bytes(family: str, axes: Axes, element_bytes: float) -> Floats | None:
    """Bytes through device memory of each row, None for collectives and for experts (routing decides what is read).

    A copy counts its bytes once.
    """
    formula = _BYTES.get(family)
    return None if formula is None else np.asarray(formula(axes, element_bytes), dtype=np.float64)


def link_bytes(family: str, axes: Axes) -> Floats | None:
    """Bytes that one rank must send or receive at the least, None for families that are no collective.

    That of the ring, but all_reduce counts its message once: a switch that reduces on the way needs no second round.
    """
    if family not in COLLECTIVES:
        return None
    message, ranks = axes["message_bytes"], axes["ranks"]
    wire = wire_bytes(family, message, ranks)
    return np.minimum(wire, message) if family == "all_reduce" else wire


def _square(axes: Axes) -> Floats:
    return np.asarray(axes["heads"] * axes["length"] ** 2 * axes["head_dim"])


def _decode(axes: Axes) -> Floats:
    return np.asarray(axes["batch"] * axes["heads"] * axes["kv_length"] * axes["head_dim"])


def _expert_flops(axes: Axes) -> Floats:
    shards = axes["tensor_ranks"] * axes["expert_ranks"]
    return np.asarray(6.0 * axes["hidden"] * axes["ffn"] * axes["tokens"] * axes["top_k"] / shards)


_FLOPS: dict[str, Callable[[Axes], Floats]] = {
    "gemm": lambda a: np.asarray(2.0 * a["m"] * a["n"] * a["k"]),
    "encoder_attention": lambda a: 4.0 * _square(a),
    "prefill_attention": lambda a: 2.0 * a["batch"] * _square(a),
    "decode_attention": lambda a: 4.0 * _decode(a),
    "moe_gemm": _expert_flops,
}

_BYTES: dict[str, Callable[[Axes, float], Floats]] = {
    "gemm": lambda a, s: np.asarray(s * (a["m"] * a["k"] + a["k"] * a["n"] + a["m"] * a["n"])),
    "encoder_attention": lambda a, s: np.asarray(s * 4.0 * a["heads"] * a["length"] * a["head_dim"]),
    "prefill_attention": lambda a, s: np.asarray(
        s * 2.0 * a["batch"] * a["heads"] * a["length"] * a["head_dim"] * (1.0 + 1.0 / a["queries_per_kv_head"])
    ),
    "decode_attention": lambda a, s: np.asarray(s * 2.0 * _decode(a) / a["queries_per_kv_head"]),
    "memory_copy": lambda a, _s: np.asarray(a["message_bytes"] * 1.0),
}
