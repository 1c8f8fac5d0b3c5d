"""How much a place takes before it is measured: work, which its time is near to proportional to, and memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from profiles import work as ideal
from profiles.families import COLLECTIVES, DTYPE_BYTES
from profiles.measure.place import Curve, Place, Sample, element_bytes

Measured = Mapping[Curve, Mapping[int, Sample]]

FLOP_A_BYTE = 10.0
"""A byte moved counts as so many FLOPs of work: near the balance of CPUs, and it only ranks guesses."""
GUESSED_WORK_PER_S = {"cpu": 2e9, "cuda": 1e12}
"""A first guess where nothing of a family is measured yet, on the slow side."""
CALL_S = {"cpu": 2e-6, "cuda": 1e-5}
PREPARED_S = 5e-5
"""To make the operands of one product."""


def work(place: Place) -> float:
    """FLOPs and bytes of a place as one number, for ratios between places of one family."""
    family, size = place.curve.family, float(DTYPE_BYTES[place.curve.dtype])
    axes = {axis: np.array(value, dtype=np.float64) for axis, value in place.axes.items()}
    if family in COLLECTIVES:
        return float(axes["message_bytes"]) * FLOP_A_BYTE
    flops, moved = ideal.flops(family, axes), ideal.memory_bytes(family, axes, size)
    return (0.0 if flops is None else float(flops)) + (0.0 if moved is None else float(moved) * FLOP_A_BYTE)


def calls(place: Place) -> int:
    """How many kernels one run starts: two products an expert, of others one."""
    axes = place.axes
    return 2 * -(-axes["experts"] // axes["expert_ranks"]) if place.curve.family == "moe_gemm" else 1


def guessed_seconds(place: Place, measured: Measured, device: str) -> float:
    """A guess of one run's time: from the neighbours on the curve, else from the nearest work of the family.

    Between two sizes of the curve it is interpolated in the logarithms; elsewhere time grows with work and never
    shrinks below the nearest sample.
    """
    own = measured.get(place.curve, {})
    below = max((size for size in own if size <= place.size), default=None)
    above = min((size for size in own if size >= place.size), default=None)
    if below is not None and above is not None:
        return log_interpolated(place.size, (below, own[below].median_s), (above, own[above].median_s))
    wanted = work(place)
    candidates = [(Place(place.curve, size), sample) for size, sample in own.items()] or [
        (Place(curve, size), sample)
        for curve, samples in measured.items()
        if curve.family == place.curve.family
        for size, sample in samples.items()
    ]
    if not candidates:
        return CALL_S[device] * calls(place) + wanted / GUESSED_WORK_PER_S[device]
    nearest, sample = min(candidates, key=lambda one: (abs(np.log(work(one[0]) / wanted)), one[0]))
    return sample.median_s * max(1.0, wanted / work(nearest), calls(place) / calls(nearest))


def log_interpolated(size: int, low: tuple[int, float], high: tuple[int, float]) -> float:
    """Seconds at `size` between (size, seconds) `low` and `high`, linear in the logarithms."""
    if low[0] == high[0]:
        return low[1]
    weight = np.log(size / low[0]) / np.log(high[0] / low[0])
    return float(np.exp((1.0 - weight) * np.log(low[1]) + weight * np.log(high[1])))


def memory_bytes(place: Place) -> int:
    """Bytes that one rank holds while a place is measured: operands, result and working copies."""
    family, axes, size = place.curve.family, place.axes, element_bytes(place.curve.dtype)
    if family == "memory_copy":
        return 2 * axes["message_bytes"]
    if family in COLLECTIVES:
        return 3 * axes["message_bytes"]
    if family == "gemm":
        m, n, k = axes["m"], axes["n"], axes["k"]
        return size * (m * k + k * n + m * n)
    if family == "moe_gemm":
        routed = -(-axes["tokens"] * axes["top_k"] // axes["expert_ranks"])
        ffn = -(-axes["ffn"] // axes["tensor_ranks"])
        weights = -(-axes["experts"] // axes["expert_ranks"]) * 3 * axes["hidden"] * ffn
        return size * (weights + routed * (2 * axes["hidden"] + 3 * ffn))
    depth, heads = axes["head_dim"], axes.get("batch", 1) * axes["heads"]
    kv_heads = -(-heads // axes.get("queries_per_kv_head", 1))
    if family == "decode_attention":
        return size * depth * 2 * (heads + kv_heads * axes["kv_length"])
    # Keys and values are repeated for their queries where the library has no grouped kernel.
    return size * depth * axes["length"] * (2 * heads + 2 * max(kv_heads, heads))
