"""What a device must offer to be measured: its facts, and a sample at a place."""

from __future__ import annotations

from typing import Protocol

from profiles.measure.log import Conditions
from profiles.measure.place import Place, Sample, Unmeasured


class Bench(Protocol):
    """A device ready to run operations, `copies` of them at once. `notes` and `policy` say how, for the profile."""

    device: str
    conditions: Conditions
    copies: int

    def worlds(self) -> list[tuple[int, int]]:
        """(nodes, ranks) whose collectives can be measured."""

    def available_bytes(self, ranks: int) -> int:
        """Memory that so many ranks may use together."""

    def start(self) -> None:
        """Begin what takes seconds and is no measurement: processes, libraries. Raises `ProfileError`."""

    def measure(self, place: Place, budget_s: float) -> Sample | Unmeasured:
        """Measure for about `budget_s` seconds, or say why not."""

    def policy(self, family: str) -> str:
        """How rows of a family were measured, one line for their table."""

    def notes(self) -> list[str]:
        """What else a reader of the profile should know."""

    def close(self) -> None:
        """Let go of processes and memory."""
