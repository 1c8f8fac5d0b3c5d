"""Ranks that can change places (page 4.2): aligned blocks whose degrees form a divisibility chain are a tree.

Siblings in that tree are interchangeable at every level, so their loads may be taken as descending.
"""

from __future__ import annotations

from itertools import pairwise

from planner.papers.zellige.instance import Instance, Piece, Placement, loads


def interchangeable(instance: Instance) -> list[tuple[int, int]]:
    """Pairs of first ranks of neighbouring siblings: the left load may be taken as at least the right one."""
    N = instance.num_ranks
    return [
        (first, first + child)
        for child, parent in pairwise(_levels(instance))
        for start in range(0, N, parent)
        for first in range(start, start + parent - child, child)
    ]


def in_descending_order(instance: Instance, placement: Placement) -> dict[Piece, int]:
    """The same placement with siblings sorted by the load of their first rank, from the leaves up."""
    load, _ = loads(instance, placement)
    order = list(range(instance.num_ranks))
    for child, parent in pairwise(_levels(instance)):
        sorted_ranks: list[int] = []
        for start in range(0, len(order), parent):
            siblings = [order[first : first + child] for first in range(start, start + parent, child)]
            siblings.sort(key=lambda ranks: -load[ranks[0]])
            sorted_ranks += [rank for ranks in siblings for rank in ranks]
        order = sorted_ranks
    place = {old: new for new, old in enumerate(order)}
    moved: dict[Piece, int] = {}
    for piece, count in placement.items():
        there = piece._replace(ranks=tuple(sorted(place[rank] for rank in piece.ranks)))
        moved[there] = moved.get(there, 0) + count
    return moved


def _levels(instance: Instance) -> list[int]:
    """Sizes of nested blocks, ascending, of which siblings are interchangeable.

    Where the chain is broken, whole nodes still are, as long as no set spans several.
    """
    if instance.problem.rank_sets.policy != "aligned":
        return []
    N, g = instance.num_ranks, instance.node_size
    degrees = {mode.degree for kind in instance.kinds for mode in kind.modes}
    levels = sorted({1, N} | degrees)
    chain = all(larger % smaller == 0 for smaller, larger in pairwise(levels))
    if chain and all(g % degree == 0 if degree <= g else degree % g == 0 for degree in degrees):
        return levels
    return [g, N] if max(degrees) <= g < N else []
