"""Quantities for people; everything inside stays in SI."""

from __future__ import annotations

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def seconds(value: float) -> str:
    """A time with four significant digits and a unit; seconds of more than four digits whole."""
    if 9999.5 <= abs(value) < 1e15:
        return f"{value:,.0f} s"
    for size, unit in _TIMES:
        if abs(value) >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value / 1e-9:.3g} ns" if value else "0 s"


def in_bytes(value: float) -> str:
    """Bytes in decimal units, three significant digits."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= 0.9995 * size:  # what would be rounded up to the unit is written in it
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} B"


def amount(value: float, unit: str) -> str:
    """A quantity by its SI unit: four significant digits, or all before the point where they are more."""
    if unit == "s":
        return seconds(value)
    if unit == "bytes":
        return in_bytes(value)
    large = 999.95 <= abs(value) < 1e15
    return f"{value:,.0f} {unit}".rstrip() if large else f"{value:.4g} {unit}".rstrip()


def told(value: float, unit: str) -> str:
    """A quantity for people, and in SI behind it, whole or in ten digits, where that says more."""
    number = f"{value:.0f}" if float(value).is_integer() and abs(value) < 2**53 else f"{value:.10g}"
    if not unit:
        return number
    digits = 3 if unit == "bytes" else 4
    exact = float(f"{value:.{digits}g}") == value
    return amount(value, unit) if exact else f"{amount(value, unit)} ({number} {unit})"


def scale(longest: float, unit: str) -> tuple[float, str]:
    """In what to write many amounts of a unit up to ``longest``, so that they are short: its size, its name."""
    if unit != "s":
        return 1.0, unit
    for size, name in _TIMES:
        if abs(longest) >= size:
            return size, name
    return 1e-9, "ns"


def percent(ratio: float) -> str:
    """A ratio as a percentage; small values keep a significant digit, tiny ones are a millionth."""
    if 0 < abs(ratio) < 1e-6:
        return "0.0001 %"
    return f"{ratio * 100:.2f} %" if ratio == 0 or abs(ratio) >= 5e-4 else f"{ratio * 100:.1g} %"
