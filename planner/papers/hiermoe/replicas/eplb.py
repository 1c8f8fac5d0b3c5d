"""EPLB (deepseek-ai/EPLB, MIT) as an algorithm: balance by copies of the experts that are asked most.

It sees loads alone and shares an expert's load evenly over its copies. It may put two copies of an expert on one rank.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.hiermoe.balance import packed

Array = NDArray[np.int64]
Weights = NDArray[np.float64]


def eplb(loads: Weights, slots: int, groups: int, nodes: int, ranks: int) -> Array:
    """int64 [slots]: the table of the hierarchical rule, or of the global one where nodes do not divide groups.

    Groups of consecutive experts stay within a node. Slots of a rank come in the order in which they were filled.
    """
    if groups % nodes or len(loads) % groups:
        groups = nodes = 1
    experts = _order_of_nodes(loads, groups, nodes)
    table = [node[_balanced(loads[node], slots // nodes, ranks // nodes)] for node in np.split(experts, nodes)]
    return np.concatenate(table)


def copies(loads: Weights, slots: int) -> Array:
    """int64 [slots]: every expert once, then one more of the one with the largest load per copy, until all are used."""
    count = np.ones(len(loads), dtype=np.int64)
    chosen = list(range(len(loads)))
    while len(chosen) < slots:
        expert = int(np.argmax(loads / count))
        count[expert] += 1
        chosen.append(expert)
    return np.array(chosen, dtype=np.int64)


def _order_of_nodes(loads: Weights, groups: int, nodes: int) -> Array:
    """int64 [E]: experts by node, whole groups of them packed evenly."""
    size = len(loads) // groups
    order = _filled(loads.reshape(groups, size).sum(axis=1), nodes)
    return (order[:, None] * size + np.arange(size)).ravel()


def _balanced(loads: Weights, slots: int, ranks: int) -> Array:
    """int64 [slots]: copies of a node's experts (numbered in it), packed evenly onto its ranks."""
    chosen = copies(loads, slots)
    share = loads / np.bincount(chosen, minlength=len(loads))
    return chosen[_filled(share[chosen], ranks)]


def _filled(weights: Weights, bins: int) -> Array:
    """int64 [items]: items by bin, those of one bin in the order they came, which is that of decreasing weight."""
    if len(weights) == bins:
        return np.arange(bins)
    by_weight = np.argsort(-weights, kind="stable")
    return by_weight[np.argsort(packed(weights, bins)[by_weight], kind="stable")]
