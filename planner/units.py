"""Quantities for people; everything inside stays in SI."""

from __future__ import annotations


def seconds(value: float) -> str:
    """A time with four significant digits and a unit."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value / 1e-9:.3g} ns" if value else "0 s"


def in_bytes(value: float) -> str:
    """Bytes in decimal units, three significant digits."""
    for scale, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= 0.9995 * scale:  # what would be rounded up to the unit is written in it
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g} B"


def amount(value: float, unit: str) -> str:
    """A quantity by its SI unit."""
    return seconds(value) if unit == "s" else in_bytes(value) if unit == "bytes" else f"{value:.4g} {unit}".rstrip()


def percent(ratio: float) -> str:
    """A ratio as a percentage; small values keep a significant digit, tiny ones are a millionth."""
    if 0 < abs(ratio) < 1e-6:
        return "0.0001 %"
    return f"{ratio * 100:.2f} %" if ratio == 0 or abs(ratio) >= 5e-4 else f"{ratio * 100:.1g} %"
