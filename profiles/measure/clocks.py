"""The GPU's clock and what holds it back, from nvidia-smi. A throttled row is slower than the device need be."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

QUERY = "clocks.sm,clocks_throttle_reasons.active"
REASONS = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Bits of NVML's clocksEventReasons that mean a slower clock than the load asks for."""


@dataclass(frozen=True)
class Clock:
    """The SM clock in Hz, and what holds it back (empty: nothing)."""

    clock_hz: float
    throttled: str


def read_clock(gpu: str) -> Clock | None:
    """The clock of a GPU (its uuid or number) now, None where nvidia-smi is missing or does not know."""
    command = ["nvidia-smi", "-i", gpu, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_clock(ran.stdout) if ran.returncode == 0 else None


def parse_clock(text: str) -> Clock | None:
    """The clock in nvidia-smi's line (``1980, 0x0000000000000004``), None if a field is not supported."""
    fields = [field.strip() for field in text.strip().split(",")]
    try:
        megahertz, mask = float(fields[0]), int(fields[1], 16)
    except (ValueError, IndexError):
        return None
    held = [reason for bit, reason in REASONS.items() if mask & bit]
    return Clock(megahertz * 1e6, ", ".join(held)) if megahertz > 0 else None
