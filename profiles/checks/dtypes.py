"""Peaks stated for dtypes that no table can have, so that nothing is ever compared with them."""

from __future__ import annotations

from profiles.checks.finding import Finding
from profiles.document import Device
from profiles.errors import nearest_name, shown
from profiles.families import DTYPE_BYTES

_ALIASES = {"bfloat16": "bf16", "half": "fp16", "float16": "fp16", "float": "fp32", "float32": "fp32",
            "float64": "fp64", "double": "fp64", "float8": "fp8", "e4m3": "fp8", "fp4": "nvfp4"}  # fmt: skip


def unknown_peaks(device: Device) -> list[Finding]:
    """A warning for each key of peak_flop_per_s that is no dtype; it names the nearest one that is."""
    found = []
    for name in device.peak_flop_per_s:
        if name not in DTYPE_BYTES:
            near = _ALIASES.get(name.lower()) or nearest_name(name, DTYPE_BYTES)
            what = f"{shown(name)!r} is no dtype of a table, so its peak is compared with nothing"
            fix = f"name it {near}" if near else "leave it out"
            place = f"device.peak_flop_per_s.{shown(name)}"
            found.append(Finding("unknown_dtype", "warning", "", place, what, f"one of {', '.join(DTYPE_BYTES)}", fix))
    return found
