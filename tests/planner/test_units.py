"""Quantities as people read them, with the exact number where it says more."""

from __future__ import annotations

import pytest

from planner.errors import InfeasibleError
from planner.units import told


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (80e9, "bytes", "80 GB"),
        (96040855550.0, "bytes", "96 GB (96040855550 bytes)"),
        (7.0, "bytes", "7 B"),
        (1234.5, "bytes", "1.23 kB (1234.5 bytes)"),
        (0.0312, "s", "31.2 ms"),
        (0.03123456789, "s", "31.23 ms (0.03123456789 s)"),
        (2, "", "2"),
        (2.5, "", "2.5"),
    ],
)
def test_an_amount_is_told_in_its_unit_and_whole(value: float, unit: str, words: str) -> None:
    assert told(value, unit) == words


def test_the_error_object_keeps_plain_numbers() -> None:
    error = InfeasibleError("x", code="c", required=96040855550.0, available=80e9, unit="bytes")
    assert error.lines()[1] == "  required 96 GB (96040855550 bytes), available 80 GB"
    assert (error.as_object()["required"], error.as_object()["available"]) == (96040855550.0, 80e9)
