"""A GPU that is not there: an operation takes the time a law says, by events of its own."""

from __future__ import annotations

from collections.abc import Callable

from profiles.measure.clocks import Clock
from profiles.measure.operations import Run
from profiles.measure.place import Place
from profiles.measure.sampling import Timer


class FakeGpu:
    """See `profiles.measure.gpu.Gpu`. `refuse` gives the reason why a place cannot run, or nothing."""

    name, memory_bytes, multiprocessors, count = "Fake GPU 80GB", 80 * 10**9, 132, 1

    def __init__(
        self, law: Callable[[Place], float], refuse: Callable[[Place], str] = lambda _place: "", throttled: str = ""
    ) -> None:
        self.law, self.refuse, self.throttled = law, refuse, throttled
        self.free, self.software = self.memory_bytes, {"cuda": "13.0"}
        self.groups: list[object] = []
        self.seconds = 0.0

    def free_bytes(self) -> int:
        """What the test says."""
        return self.free

    def prepare(self, place: Place, group: object) -> tuple[Run, str] | str:
        """The operation sets what the next event pair measures."""
        self.groups.append(group)
        reason = self.refuse(place)
        if reason:
            return reason

        def run() -> None:
            self.seconds = self.law(place)

        return run, "fake kernel"

    def timer(self, run: Run) -> Timer:
        """Exact, by the law."""

        def timer(count: int, loops: int) -> tuple[list[float], float]:
            assert loops == 1  # a loop would find its operands in the cache
            run()
            return [self.seconds] * count, self.seconds * count

        return timer

    def empty_s(self) -> float:
        """Two microseconds."""
        return 2e-6

    def clock_under(self, run: Run, run_s: float) -> Clock | None:
        """1.5 GHz."""
        return Clock(1.5e9, self.throttled)
