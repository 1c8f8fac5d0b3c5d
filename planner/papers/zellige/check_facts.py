"""What the check reads from the problem alone.

Shares nothing with the engines: a rank set's legality is decided from its own numbers, never by listing the legal sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from planner.papers.zellige.problem import Option, ZelligeProblem

TOLERANCE = 1e-9
"""Relative difference below which two figures agree."""


@dataclass(frozen=True)
class Facts:
    """Lookups into a problem: a sequence's group, a group's options by config id, a config's degree.

    ``packable`` are the pure-Ulysses configs (q = k = 1), whose sequences may share one segment.
    """

    problem: ZelligeProblem
    group_of: dict[str, int]
    options: list[dict[str, Option]]
    degrees: dict[str, int]
    packable: frozenset[str]
    explicit: dict[str, frozenset[tuple[int, ...]]]

    @property
    def num_ranks(self) -> int:
        """N."""
        return self.problem.cluster.num_ranks

    def option(self, sequence_id: str, config: str) -> Option | None:
        """The option of a sequence, None where the sequence or its option is unknown."""
        group = self.group_of.get(sequence_id)
        return None if group is None else self.options[group].get(config)

    def rank_set_fault(self, config: str, ranks: tuple[int, ...]) -> str | None:
        """Why these ranks may not share a sequence in this configuration, None where they may (page section 3)."""
        degree = self.degrees[config]
        if len(ranks) != degree:
            return f"expected {degree} ranks, got {len(ranks)}"
        if ranks[0] < 0 or ranks[-1] >= self.num_ranks or any(a >= b for a, b in pairwise(ranks)):
            return f"expected ascending ranks below {self.num_ranks}"
        if self.problem.rank_sets.policy == "explicit":
            listed = self.explicit.get(config)
            if listed is None:
                return None if degree == 1 else f'expected a listed rank set, but "{config}" lists none'
            return None if ranks in listed else f'expected a rank set listed for "{config}"'
        node_size = min(self.problem.cluster.gpus_per_node, self.num_ranks)
        if degree > node_size and degree % node_size:
            return f"expected a degree of at most one node ({node_size}) or of whole nodes, got {degree}"
        if self.problem.rank_sets.policy == "aligned":
            return _aligned_fault(ranks, node_size)
        return _node_local_fault(ranks, node_size)


def _aligned_fault(ranks: tuple[int, ...], node_size: int) -> str | None:
    first, degree = ranks[0], len(ranks)
    offset = first % node_size
    if ranks[-1] - first != degree - 1:
        return "expected consecutive ranks"
    if degree > node_size:
        return None if first % degree == 0 else f"expected a first rank that is a multiple of {degree}, got {first}"
    if offset % degree or offset + degree > node_size:
        return f"expected an aligned block of {degree} inside one node of {node_size}"
    return None


def _node_local_fault(ranks: tuple[int, ...], node_size: int) -> str | None:
    nodes = {rank // node_size for rank in ranks}
    if len(ranks) <= node_size:
        return None if len(nodes) == 1 else f"expected ranks of one node of {node_size}"
    return None if len(nodes) * node_size == len(ranks) else f"expected whole nodes of {node_size}"


def read_facts(problem: ZelligeProblem) -> Facts:
    """The lookups of a problem."""
    group_of: dict[str, int] = {}
    for index, group in enumerate(problem.groups):
        group_of.update(dict.fromkeys(group.sequence_ids, index))
    return Facts(
        problem=problem,
        group_of=group_of,
        options=[{option.config: option for option in group.options} for group in problem.groups],
        degrees={config.id: config.q * config.h * config.k for config in problem.configs},
        packable=frozenset(config.id for config in problem.configs if config.q == config.k == 1),
        explicit={name: frozenset(sets) for name, sets in (problem.rank_sets.sets or {}).items()},
    )


def total(parts: Iterable[float]) -> float:
    """The exactly rounded sum; infinite where it exceeds every float."""
    try:
        return math.fsum(parts)
    except OverflowError:
        return math.inf


def agree(first: float, second: float) -> bool:
    """Equal within the tolerance."""
    return math.isclose(first, second, rel_tol=TOLERANCE)


def shown(values: Iterable[object], limit: int = 8) -> str:
    """A list for a message, cut after a few elements."""
    items = list(values)
    tail = f", ... ({len(items)} in all)" if len(items) > limit else ""
    return f"[{', '.join(str(item) for item in items[:limit])}{tail}]"
