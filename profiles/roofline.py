"""Utilisation models: what a family's time should be from its FLOPs and bytes, fitted to measured rows.

Every model is `overhead + compute + memory`-like, smooth, and non-decreasing in every size, so more work is never
cheaper. They are used as ratios (`price outside = measured edge x model outside / model at the edge`): the edge carries
the level, the model only the slope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profiles.families import COLLECTIVES
from profiles.least_squares import fit_positive

Floats = npt.NDArray[np.float64]
Axes = Mapping[str, Floats]
Coefficients = Mapping[str, float]


@dataclass(frozen=True)
class Model:
    """A formula for one family: starting coefficients (in SI units) and seconds from axes and coefficients."""

    start: dict[str, float]
    seconds: Callable[[Axes, Coefficients, float], Floats]


def _either(compute: Floats, memory: Floats) -> Floats:
    """A smooth maximum (4-norm): the slower of the two decides, with a soft knee as measured kernels have."""
    return np.asarray((compute**4 + memory**4) ** 0.25)


def _gemm(axes: Axes, c: Coefficients, size: float) -> Floats:
    m, n, k = axes["m"], axes["n"], axes["k"]
    compute = 2.0 * (m + c["m_0"]) * (n + c["n_0"]) * (k + c["k_0"]) / c["flop_per_s"]
    memory = size * (m * k + k * n + m * n) / c["bytes_per_s"]
    return c["overhead_s"] + _either(compute, memory)


def _encoder(axes: Axes, c: Coefficients, size: float) -> Floats:
    heads, length, depth = axes["heads"], axes["length"], axes["head_dim"]
    compute = 4.0 * depth * (heads * length + c["rows_0"]) * (length + c["length_0"]) / c["flop_per_s"]
    memory = size * 4.0 * heads * length * depth / c["bytes_per_s"]
    return c["overhead_s"] + _either(compute, memory)


def _prefill(axes: Axes, c: Coefficients, size: float) -> Floats:
    heads, length, depth = axes["batch"] * axes["heads"], axes["length"], axes["head_dim"]
    compute = 2.0 * depth * (heads * length + c["rows_0"]) * (length + c["length_0"]) / c["flop_per_s"]
    memory = size * 2.0 * heads * length * depth * (1.0 + 1.0 / axes["queries_per_kv_head"]) / c["bytes_per_s"]
    return c["overhead_s"] + _either(compute, memory)


def _decode(axes: Axes, c: Coefficients, size: float) -> Floats:
    heads, length, depth = axes["batch"] * axes["heads"], axes["kv_length"], axes["head_dim"]
    compute = 4.0 * depth * (heads + c["rows_0"]) * (length + c["length_0"]) / c["flop_per_s"]
    memory = size * 2.0 * heads / axes["queries_per_kv_head"] * length * depth / c["bytes_per_s"]
    return c["overhead_s"] + _either(compute, memory)


def _moe(axes: Axes, c: Coefficients, size: float) -> Floats:
    routed, shards = axes["tokens"] * axes["top_k"], axes["tensor_ranks"] * axes["expert_ranks"]
    weights = 3.0 * axes["hidden"] * axes["ffn"]
    compute = 2.0 * weights * (routed + c["tokens_0"]) / shards / c["flop_per_s"]
    memory = size * weights * np.minimum(routed, axes["experts"]) / shards / c["bytes_per_s"]
    moved = size * 2.0 * routed / axes["expert_ranks"] * axes["hidden"] / c["bytes_per_s"]
    return c["overhead_s"] + _either(compute, memory + moved)


# Latent attention of DeepSeek V2 and V3, Kimi K2: a head multiplies 192 numbers (128 and 64 with positions) to score
# and 128 to read out; a decoding step works on the cached latent of 576 (512 and 64), shared by all heads.
_SCORED, _READ, _LATENT, _LATENT_READ = 192.0, 128.0, 576.0, 512.0


def _mla_prefill(axes: Axes, c: Coefficients, size: float) -> Floats:
    heads, length = axes["batch"] * axes["heads"], axes["length"]
    compute = (_SCORED + _READ) * (heads * length + c["rows_0"]) * (length + c["length_0"]) / c["flop_per_s"]
    memory = size * 2.0 * heads * length * (_SCORED + _READ) / c["bytes_per_s"]
    return c["overhead_s"] + _either(compute, memory)


def _mla_decode(axes: Axes, c: Coefficients, size: float) -> Floats:
    heads, length = axes["batch"] * axes["heads"], axes["kv_length"]
    compute = 2.0 * (_LATENT + _LATENT_READ) * (heads + c["rows_0"]) * (length + c["length_0"]) / c["flop_per_s"]
    memory = size * axes["batch"] * length * _LATENT / c["bytes_per_s"]
    return c["overhead_s"] + _either(compute, memory)


def _mla_bmm(axes: Axes, c: Coefficients, size: float) -> Floats:
    heads, tokens = axes["heads"], axes["tokens"]
    compute = 2.0 * _READ * _LATENT_READ * heads * (tokens + c["tokens_0"]) / c["flop_per_s"]
    memory = size * heads * (_READ * _LATENT_READ + tokens * (_READ + _LATENT_READ)) / c["bytes_per_s"]
    return c["overhead_s"] + _either(compute, memory)


def _mlp(axes: Axes, c: Coefficients, size: float) -> Floats:
    weights = 3.0 * axes["hidden"] * axes["ffn"]
    compute = 2.0 * weights * (axes["tokens"] + c["tokens_0"]) / c["flop_per_s"]
    return c["overhead_s"] + _either(compute, size * weights / c["bytes_per_s"])


def _elementwise(axes: Axes, c: Coefficients, size: float) -> Floats:
    return np.asarray(c["overhead_s"] + size * axes["tokens"] * axes["width"] / c["bytes_per_s"])


def wire_bytes(operation: str, message_bytes: Floats, ranks: Floats) -> Floats:
    """Bytes each rank sends in the bandwidth-optimal algorithm, for a message in the nccl-tests convention."""
    if operation in ("send_recv", "broadcast"):
        return np.asarray(message_bytes * 1.0)
    rounds = 2.0 if operation == "all_reduce" else 1.0
    return np.asarray(rounds * (ranks - 1.0) / ranks * message_bytes)


def _collective(operation: str) -> Model:
    def seconds(axes: Axes, c: Coefficients, _size: float) -> Floats:
        wire = wire_bytes(operation, axes["message_bytes"], axes["ranks"])
        return c["overhead_s"] + c["step_s"] * axes["ranks"] + wire / c["bytes_per_s"]

    return Model({"overhead_s": 1e-5, "step_s": 1e-6, "bytes_per_s": 1e11}, seconds)


def _copy(axes: Axes, c: Coefficients, _size: float) -> Floats:
    return np.asarray(c["overhead_s"] + axes["message_bytes"] / c["bytes_per_s"])


_ATTENTION = {"overhead_s": 1e-5, "flop_per_s": 3e14, "bytes_per_s": 1e12, "rows_0": 1e4, "length_0": 1e2}
_GEMM = {"overhead_s": 5e-6, "flop_per_s": 5e14, "bytes_per_s": 1e12, "m_0": 20.0, "n_0": 20.0, "k_0": 50.0}

_PRODUCT = {"overhead_s": 2e-5, "flop_per_s": 3e14, "bytes_per_s": 1e12, "tokens_0": 10.0}

MODELS: dict[str, Model] = {
    "gemm": Model(_GEMM, _gemm),
    "encoder_attention": Model(_ATTENTION, _encoder),
    "prefill_attention": Model(_ATTENTION, _prefill),
    "decode_attention": Model({**_ATTENTION, "rows_0": 10.0}, _decode),
    "mla_prefill": Model(_ATTENTION, _mla_prefill),
    "mla_decode": Model({**_ATTENTION, "rows_0": 10.0}, _mla_decode),
    "mla_bmm": Model(_PRODUCT, _mla_bmm),
    "mlp": Model(_PRODUCT, _mlp),
    "moe_gemm": Model(_PRODUCT, _moe),
    "elementwise": Model({"overhead_s": 5e-6, "bytes_per_s": 1e12}, _elementwise),
    "memory_copy": Model({"overhead_s": 5e-6, "bytes_per_s": 1e11}, _copy),
    **{operation: _collective(operation) for operation in COLLECTIVES},
}


"""Families without a formula are not extrapolated: their time is of several kernels, or of a link."""


def modelled_seconds(family: str, axes: Axes, coefficients: Coefficients, element_bytes: float) -> Floats:
    """Seconds by the family's formula; `axes` are float64 arrays of one shape."""
    return MODELS[family].seconds(axes, coefficients, element_bytes)


def fit_roofline(family: str, axes: Axes, seconds: Floats, element_bytes: float) -> dict[str, float]:
    """Coefficients fitted robustly to measured rows (at most 3,000, evenly picked), rounded to five digits."""
    model = MODELS[family]
    pick = np.unique(np.linspace(0, len(seconds) - 1, min(len(seconds), 3000)).astype(np.int64))
    chosen = {axis: column[pick].astype(np.float64) for axis, column in axes.items()}
    names = list(model.start)

    def price(coefficients: Floats) -> Floats:
        return model.seconds(chosen, dict(zip(names, coefficients.tolist(), strict=True)), element_bytes)

    start = np.array([model.start[name] for name in names])
    fitted = fit_positive(price, start, seconds[pick])
    return {name: float(f"{value:.4e}") for name, value in zip(names, fitted.tolist(), strict=True)}
