"""What the named placements give on the same problem (page, section 5), by the same evaluator."""

from __future__ import annotations

from planner.paper import Baseline
from planner.papers.memory.explained import Placement, placement_at, solution_of
from planner.papers.memory.placements import Placements, fitting, placements
from planner.papers.memory.problem import STATES, MemoryProblem
from planner.papers.memory.solution import MemorySolution
from planner.units import in_bytes, seconds
from solvers.report import Limits


def named_placements(n: int) -> dict[str, Placement | None]:
    """The placements of the page by name, over ``n`` dimensions; None where they need more."""
    return {
        "dp": Placement("replicated", "replicated", "replicated", "kept", 0, 0, 0),
        "zero1": Placement("replicated", "replicated", "sharded", "kept", 0, 0, n),
        "zero2": Placement("replicated", "sharded", "sharded", "kept", 0, n, n),
        "zero3": Placement("gather", "sharded", "sharded", "kept", n, n, n),
        "hsdp": Placement("gather", "sharded", "sharded", "kept", 1, 1, 1) if n > 1 else None,
        "shard_grad_op": Placement("gather_keep", "sharded", "sharded", "kept", n, n, n),
        "zero3_full_recompute": Placement("gather", "sharded", "sharded", "materialised", n, n, n),
        "zero_offload": Placement("replicated", "sharded", "offloaded", "kept", 0, n, n),
    }


def baselines(problem: MemoryProblem, limits: Limits) -> list[Baseline[MemorySolution]]:
    """All of them in the order of the page; one that does not fit says what it lacks, and has no objective."""
    del limits
    found = placements(problem)
    places = {placement_at(found, place): place for place in range(len(found))}
    return [
        _baseline(problem, found, name, placement, places)
        for name, placement in named_placements(problem.num_dims).items()
    ]


def _baseline(
    problem: MemoryProblem, found: Placements, name: str, placement: Placement | None, places: dict[Placement, int]
) -> Baseline[MemorySolution]:
    if placement is None:
        return Baseline(name, None, "there is one data-parallel dimension: it is zero3", feasible=False)
    place = places.get(placement)
    if place is None:
        return Baseline(name, None, why_absent(problem, placement), feasible=False)
    if lack := lacking(problem, found, place):
        took = seconds(float(found.overhead_s[place]))
        return Baseline(name, None, f"{lack}; it would take {took}", feasible=False)
    solution = solution_of(problem, found, place)
    return Baseline(name, solution.overhead_s, f"{in_bytes(solution.device_bytes)} a device", solution)


def lacking(problem: MemoryProblem, found: Placements, place: int) -> str:
    """What device and host lack for a placement, in words; empty where it fits."""
    on_device, on_host = fitting(problem, found)
    parts = []
    if not on_device[place]:
        parts.append(_over("device", float(found.device_bytes[place]), problem.capacity_bytes))
    if not on_host[place]:
        parts.append(
            _over("host", float(found.host_bytes[place]), problem.host.capacity_bytes if problem.host else 0.0)
        )
    return ", ".join(parts)


def _over(where: str, needed: float, capacity: float) -> str:
    return f"{where}: {in_bytes(needed)}, {in_bytes(needed - capacity)} too many"


def why_absent(problem: MemoryProblem, placement: Placement) -> str:
    """Why a placement that keeps the rules of nesting is not among the problem's."""
    if problem.host is None and any(getattr(placement, state) == "offloaded" for state in STATES):
        return "there is no host"
    for state in STATES:
        asked, mode = getattr(problem.search, state), getattr(placement, state)
        if asked is not None and mode not in asked:
            return f"search leaves {mode} {state} out"
    return "recomputing is not offered: materialised_bytes is not given"
