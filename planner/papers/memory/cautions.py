"""What the reader of a plan should know before launching, the most important first."""

from __future__ import annotations

from collections.abc import Iterator

from planner.memory.near_capacity import NEAR_CAPACITY
from planner.paper import Warned
from planner.papers.memory.problem import MemoryProblem
from planner.papers.memory.solution import MemorySolution
from planner.units import in_bytes

LEAST_OTHER_BYTES = 1e9
"""Context and communicators alone take 0.3 to 1 GB (page, section 3.6)."""


def warnings(problem: MemoryProblem, solution: MemorySolution) -> list[Warned]:
    """All of them, each code once: how close it is, what is not known of the bytes, then what made the prices."""
    stated = (Warned(code, message) for code, message in sorted((problem.cautions or {}).items()))
    return [*_near_capacity(problem, solution), *_other_bytes_unmeasured(problem), *stated]


def _near_capacity(problem: MemoryProblem, solution: MemorySolution) -> Iterator[Warned]:
    places = [("device", solution.device_bytes, problem.capacity_bytes)]
    if problem.host is not None:
        places.append(("host", solution.host_bytes, problem.host.capacity_bytes))
    full = [
        f"{used / capacity:.1%} of the {place}'s {in_bytes(capacity)}"
        for place, used, capacity in places
        if used > NEAR_CAPACITY * capacity
    ]
    if full:
        advice = "" if problem.other_measured else "; set other_bytes by one measured peak"
        yield Warned(
            "near_capacity",
            f"the plan fills {' and '.join(full)}: the model has no allocator, and above {NEAR_CAPACITY:.0%} runs do "
            f"fail for want of memory{advice}",
        )


def _other_bytes_unmeasured(problem: MemoryProblem) -> Iterator[Warned]:
    if not problem.other_measured and problem.other_bytes < LEAST_OTHER_BYTES:
        yield Warned(
            "other_bytes_unmeasured",
            f"other_bytes is {in_bytes(problem.other_bytes)}, not measured: context and communicators take 0.3 to "
            "1 GB, workspace and fragmentation come on top",
        )
