"""A device that takes the time a law says, on a clock of its own: runs are exact and take no time."""

from __future__ import annotations

from collections.abc import Callable

from profiles.document import Device
from profiles.measure.log import Conditions
from profiles.measure.place import Place, Sample, Unmeasured

RUNS = 6
"""One to warm up and five to be timed."""


def conditions(**changes: object) -> Conditions:
    """Those of the fake device, with changes."""
    facts: dict[str, object] = {
        "device": Device(name="Fake", memory_bytes=10**10),
        "cores": 2,
        "software": {"numpy": "2.0"},
        "dtypes": ["fp32"],
        "ranks": 1,
        "threads": 1,
        "backend": "shared_memory",
    }
    return Conditions.model_validate(facts | changes)


class FakeBench:
    """See `profiles.measure.bench.Bench`. `law` gives the seconds of a place; `refuse` a reason, or nothing."""

    device = "cpu"
    copies = 1

    def __init__(self, law: Callable[[Place], float], memory_bytes: int = 10**10) -> None:
        self.law, self.memory_bytes, self.conditions = law, memory_bytes, conditions()
        self.now = 0.0
        self.asked: list[Place] = []
        self.closed = False

    def clock(self) -> float:
        """Seconds since the start."""
        return self.now

    def worlds(self) -> list[tuple[int, int]]:
        """None."""
        return []

    def available_bytes(self, ranks: int) -> int:
        """What the test says."""
        return self.memory_bytes

    def start(self) -> None:
        """Ready at once."""

    def measure(self, place: Place, budget_s: float) -> Sample | Unmeasured:
        """By the law; the clock goes on by all runs."""
        self.asked.append(place)
        seconds = self.law(place)
        self.now += RUNS * seconds
        return Sample(seconds, 0.0, RUNS - 1, "fake")

    def policy(self, family: str) -> str:
        """One line."""
        return f"{family} by a law"

    def notes(self) -> list[str]:
        """One note."""
        return ["not a real device"]

    def close(self) -> None:
        """Remember."""
        self.closed = True
