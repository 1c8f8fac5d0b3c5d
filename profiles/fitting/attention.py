"""Attention: a quadratic in the length, and for one query token a line in the tokens it attends to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from profiles.document import Device, Table
from profiles.families import DTYPE_BYTES
from profiles.fitting.document import Fit
from profiles.fitting.making import Axes, Named, Unfitted, groups, linear_fit, pick, rows_of
from profiles.fitting.quality import short
from profiles.work import compute_dtype

Floats = npt.NDArray[np.float64]


def square_fits(table: Table, device: Device) -> list[Fit | Unfitted]:
    """Encoder and causal attention: one joint fit for each kernel, then one for each curve of four or more rows."""
    axes, seconds = rows_of(table)
    causal = table.family == "prefill_attention"
    kernel = ("head_dim", "queries_per_kv_head") if causal else ("head_dim",)
    curve = (*kernel, "batch", "heads") if causal else (*kernel, "heads")
    fits = [_joint(table, pick(axes, rows), seconds[rows], at, device) for at, rows in groups(axes, kernel)]
    fits += [_curve(table, pick(axes, rows), seconds[rows], at) for at, rows in groups(axes, curve)]
    return [fit for fit in fits if fit is not None]


def decode_fits(table: Table, device: Device) -> list[Fit | Unfitted]:
    """One query token a sequence: one joint fit for each kernel, then one for each curve of three or more rows."""
    axes, seconds = rows_of(table)
    kernel = ("head_dim", "queries_per_kv_head")
    fits = []
    for at, rows in groups(axes, kernel):
        some = pick(axes, rows)
        heads = some["batch"] * some["heads"]
        bytes_each = 2.0 * DTYPE_BYTES[table.dtype] * at["head_dim"] / at["queries_per_kv_head"]
        memory = device.memory_bandwidth_bytes_per_s

        def achieved(found: Floats, bytes_each: float = bytes_each, memory: float | None = memory) -> dict[str, float]:
            if not found[2] > 0:
                return {}
            rate = bytes_each / float(found[2])
            share = {"utilisation_of_memory": short(rate / memory)} if memory else {}
            return {"bytes_per_s": short(rate), **share}

        terms = np.stack([np.ones_like(heads), heads, heads * some["kv_length"]], axis=1)
        formula = "t = c0_s + c1_s_per_head batch heads + c2_s_per_head_token batch heads kv_length"
        fits.append(
            linear_fit(
                table, some, seconds[rows], terms, form="linear", formula=formula, at=at,
                named=_named("c0_s", "c1_s_per_head", "c2_s_per_head_token"), derived=achieved,
            )
        )  # fmt: skip
    for at, rows in groups(axes, (*kernel, "batch", "heads")):
        length = axes["kv_length"][rows]
        fits.append(
            linear_fit(
                table, pick(axes, rows), seconds[rows], np.stack([np.ones_like(length), length], axis=1),
                form="linear", formula="t = c0_s + c1_s_per_token kv_length", at=at,
                named=_named("c0_s", "c1_s_per_token"),
            )
        )  # fmt: skip
    return [fit for fit in fits if fit is not None]


def _curve(table: Table, axes: Axes, seconds: Floats, at: dict[str, int]) -> Fit | Unfitted | None:
    length = axes["length"]
    return linear_fit(
        table,
        axes,
        seconds,
        np.stack([np.ones_like(length), length, length**2], axis=1),
        form="quadratic",
        formula="t = c0_s + c1_s_per_token length + c2_s_per_token2 length^2",
        at=at,
        named=_named("c0_s", "c1_s_per_token", "c2_s_per_token2"),
    )


def _joint(table: Table, axes: Axes, seconds: Floats, at: dict[str, int], device: Device) -> Fit | Unfitted | None:
    """In heads x length (rows of queries) and heads x length^2, whose coefficient is 4 head_dim / FLOP/s."""
    causal = table.family == "prefill_attention"
    heads, length = axes["heads"] * (axes["batch"] if causal else 1.0), axes["length"]
    flops_each = (2.0 if causal else 4.0) * at["head_dim"]
    peak = device.peak_flop_per_s.get(compute_dtype(table.dtype))
    words = "batch heads" if causal else "heads"

    def achieved(found: Floats) -> dict[str, float]:
        if not found[2] > 0:
            return {}
        rate = flops_each / float(found[2])
        return {"flop_per_s": short(rate), **({"utilisation_of_peak": short(rate / peak)} if peak else {})}

    return linear_fit(
        table,
        axes,
        seconds,
        np.stack([np.ones_like(length), heads * length, heads * length**2], axis=1),
        form="quadratic",
        formula=f"t = c0_s + c1_s_per_head_token {words} length + c2_s_per_head_token2 {words} length^2",
        at=at,
        named=_named("c0_s", "c1_s_per_head_token", "c2_s_per_head_token2"),
        derived=achieved,
    )


def _named(*names: str) -> Callable[[Floats], Named]:
    def named(found: Floats) -> Named:
        return {name: short(float(value)) for name, value in zip(names, found, strict=True)}

    return named
