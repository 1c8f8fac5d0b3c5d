"""EPLB's tables for a layer, and tables made legal for a launcher that refuses two copies of an expert on one rank."""

from __future__ import annotations

import numpy as np

from planner.papers.hiermoe.balance import packed
from planner.papers.hiermoe.exchange.loads import expert_loads
from planner.papers.hiermoe.exchange.tables import ascending, crowded_slots
from planner.papers.hiermoe.instance import Case, LayerCase, Table
from planner.papers.hiermoe.replicas.eplb import copies, eplb


def eplb_tables(case: Case, layer: LayerCase) -> dict[str, Table]:
    """int64 [P] by rule: hierarchical (nodes are the groups of level 1) and global. Copies may share a rank."""
    loads = expert_loads(case, layer)
    nodes = case.U[1] if len(case.U) > 1 else 1
    groups = case.problem.search.eplb_groups or nodes
    return {
        "hierarchical": eplb(loads, case.P, groups, nodes, case.G),
        "global": eplb(loads, case.P, 1, 1, case.G),
    }


def longest_first_copies(case: Case, layer: LayerCase) -> Table:
    """int64 [P]: copies where loads ask for them, each then to the rank with least load."""
    loads = expert_loads(case, layer)
    chosen = copies(loads, case.P)
    share = loads / np.bincount(chosen, minlength=case.E)
    return legal(case, layer, chosen[np.argsort(packed(share[chosen], case.G), kind="stable")])


def legal(case: Case, layer: LayerCase, table: Table) -> Table:
    """The table, ascending in each rank, with every second copy on a rank given to another expert.

    That is the one with the largest load per copy among those the rank does not hold; the lower one on ties.
    """
    if not case.problem.forbid_same_rank_replicas:
        return ascending(table, case.G)
    table = table.copy()
    loads = expert_loads(case, layer)
    for slot in crowded_slots(table, case.G):
        first = slot // case.slots * case.slots
        per_copy = loads / np.bincount(table, minlength=case.E)
        per_copy[table[first : first + case.slots]] = -1.0
        table[slot] = int(np.argmax(per_copy))
    return ascending(table, case.G)
