"""Copies of experts and where they sit (page, "Model", 8 and 9), looked at again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from planner.findings import Findings

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Seats:
    """What a placement has to fit: ``slots`` on each of ``instances``."""

    experts: int
    instances: int
    slots: int

    @property
    def copies(self) -> int:
        """Of all experts together: they fill the slots, unless every expert is everywhere before."""
        return self.instances * min(self.slots, self.experts)


def ruled(loads: Sequence[float] | Floats, seats: Seats) -> list[int]:
    """The copies that rule 8 gives, slot by slot."""
    if seats.slots >= seats.experts:
        return [seats.instances] * seats.experts
    copies = [1] * seats.experts
    # Worth of the next copy, largest first, then the lowest id.
    waiting = [(-float(load), expert) for expert, load in enumerate(loads)] if seats.instances > 1 else []
    heapify(waiting)
    for _ in range(seats.copies - seats.experts):
        _, expert = heappop(waiting)
        copies[expert] += 1
        if copies[expert] < seats.instances:
            heappush(waiting, (-float(loads[expert]) / copies[expert], expert))
    return copies


def check_placement(
    replicas: Sequence[int],
    placement: Sequence[Sequence[int]],
    loads: Sequence[float] | Floats,
    seats: Seats,
    where: str,
    found: Findings,
) -> bool:
    """Note what is wrong; whether every stated expert is one, so that the rest can be computed."""
    place = f"{where}." if where else ""
    if len(replicas) != seats.experts:
        message = f"expected the copies of {seats.experts} experts, got {len(replicas)}"
        found.add("placement_shape", message, f"{place}replicas")
    elif sum(replicas) != seats.copies:
        message = f"expected {seats.copies} copies in all, got {sum(replicas)}"
        found.add("replica_rule", message, f"{place}replicas")
    # Only as many as are written out in the placement are given out one by one.
    elif sum(map(len, placement)) == seats.copies and (expected := ruled(loads, seats)) != list(replicas):
        wrong = [expert for expert in range(seats.experts) if replicas[expert] != expected[expert]]
        message = f"expert {wrong[0]} has {replicas[wrong[0]]} copies, the rule gives it {expected[wrong[0]]}"
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        found.add("replica_rule", message + more, f"{place}replicas")
    if len(placement) != seats.instances:
        message = f"expected the experts of {seats.instances} instances, got {len(placement)}"
        found.add("placement_shape", message, f"{place}placement")
    known = True
    for instance, experts in enumerate(placement):
        at = f"{place}placement.{instance}"
        if len(experts) > seats.slots:
            found.add("slots_exceeded", f"{len(experts)} experts in {seats.slots} slots", at)
        if strange := [expert for expert in experts if not 0 <= expert < seats.experts]:
            found.add("unknown_expert", f"expected experts below {seats.experts}, got {strange[0]}", at)
            known = False
        if twice := [expert for expert, copies in Counter(experts).items() if copies > 1]:
            found.add("duplicate_expert", f"expert {twice[0]} sits there twice", at)
        if list(experts) != sorted(experts):
            found.add("placement_shape", "expected ascending experts", at)
    seated = Counter(expert for experts in placement for expert in experts)
    for expert, copies in enumerate(replicas[: seats.experts]):
        if seated[expert] != copies:
            message = f"expert {expert} has {copies} copies, {seated[expert]} of them are placed"
            found.add("replica_count", message, f"{place}placement")
    return known


def largest_coactivation(placement: Sequence[Sequence[int]], together: Floats) -> float:
    """max over instances of I(g): ``together`` [E, E] is symmetric, how often two experts were activated together."""
    worst = 0.0
    for experts in placement:
        seated = np.array(sorted(set(experts)), dtype=np.int64)
        pairs = together[np.ix_(seated, seated)]
        worst = max(worst, float(np.triu(pairs, 1).sum()))
    return worst
