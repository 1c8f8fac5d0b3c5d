"""Where this process stands among those that torchrun started, read from its environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from profiles.errors import ProfileError, shown
from profiles.measure.cpu import counts

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


@dataclass(frozen=True)
class Placement:
    """Ranks are numbered node by node, `local_ranks` on each."""

    rank: int
    ranks: int
    local_rank: int
    local_ranks: int

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.ranks // self.local_ranks

    def worlds(self) -> list[tuple[int, int]]:
        """(nodes, ranks) to measure collectives on: parts of the first node, then whole nodes."""
        inside = [(1, ranks) for ranks in counts(self.local_ranks)]
        return inside + [(nodes, nodes * self.local_ranks) for nodes in counts(self.nodes)]


def placement(environment: Mapping[str, str]) -> Placement | None:
    """The place of this process, None outside torchrun.

    Raises `ProfileError` if some of the variables are missing, no whole numbers, or contradict each other.
    """
    if "LOCAL_WORLD_SIZE" not in environment and "RANK" not in environment:
        return None
    numbers = {}
    for name in NAMES:
        text = environment.get(name)
        if text is None or not re.fullmatch(r"\s*[0-9]{1,9}\s*", text):
            found = "it is not set" if text is None else f"got {shown(text)!r}"
            raise ProfileError(
                f"started by torchrun, but {name} is no whole number: {found}", code="wrong_type", where=name
            )
        numbers[name] = int(text)
    rank, ranks, local_rank, local_ranks = (numbers[name] for name in NAMES)
    if not (0 < local_ranks <= ranks and rank < ranks and local_rank < local_ranks):
        listed = ", ".join(f"{name} {numbers[name]}" for name in NAMES)
        raise ProfileError(f"torchrun's variables contradict each other: {listed}", code="out_of_range")
    if ranks % local_ranks:
        raise ProfileError(
            f"expected nodes with as many ranks each, got {ranks} ranks and {local_ranks} on this node",
            code="out_of_range",
            where="WORLD_SIZE",
        )
    return Placement(rank, ranks, local_rank, local_ranks)
