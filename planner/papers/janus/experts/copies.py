"""Copies and placement of one layer, from its statistics."""

from __future__ import annotations

from dataclasses import dataclass

from planner.papers.janus.experts.least import least_coactivation
from planner.papers.janus.experts.placement import Ints, coactivations, full, greedy
from planner.papers.janus.experts.replicas import replica_counts
from planner.papers.janus.experts.statistics import Statistics
from planner.papers.janus.experts.swaps import descent, search


@dataclass(frozen=True, eq=False)
class Placed:
    """``copies`` int64 [E]; ``table`` int64 [n, slots used]: the experts of each instance, ascending.

    ``largest`` is max I(g), ``least`` what it is not below in any placement of these copies.
    """

    copies: Ints
    table: Ints
    largest: float
    least: float


def place(statistics: Statistics, slots: int, instances: int, pairs: int) -> Placed:
    """The placement by greedy, the page's swaps, and a search that looks at ``pairs`` more swaps.

    There must be a slot for every expert. Where there are at least E on each instance every expert is everywhere.
    """
    load, together = statistics.load, statistics.together
    copies = replica_counts(load, instances, slots)
    if slots >= len(load):
        table = full(instances, len(load))
        largest = float(coactivations(table[:1], together)[0])
        return Placed(copies, table, largest, largest)
    least = least_coactivation(copies, slots, instances, together)
    table = greedy(load, together, copies, slots, instances)
    if instances > 1:
        table = descent(table, together)
        if pairs:
            table = search(table, together, pairs, least)
    return placed(copies, table, statistics, least)


def placed(copies: Ints, table: Ints, statistics: Statistics, least: float) -> Placed:
    """A table with its experts in order, and what it comes to."""
    ordered = table.copy()
    ordered.sort(axis=1)
    return Placed(copies, ordered, float(coactivations(ordered, statistics.together).max()), least)
