"""Placements of simpler published rules for one layer, as tables: what a search must not be behind."""

from __future__ import annotations

from planner.papers.hiermoe.balance import longest_first, smart_moe
from planner.papers.hiermoe.exchange.loads import expert_loads
from planner.papers.hiermoe.exchange.tables import ascending
from planner.papers.hiermoe.exchange.time import best_dimension
from planner.papers.hiermoe.instance import Case, LayerCase, Table, Uniform, contiguous
from planner.papers.hiermoe.replicas.eplb_tables import eplb_tables
from planner.papers.hiermoe.swaps.descent import SMOOTH_GAIN, best_smooth
from planner.papers.hiermoe.swaps.search import walker


def one_swap(case: Case, layer: LayerCase) -> tuple[Table, int]:
    """The paper's own step: the current placement's d*, and the swap of least smooth objective (8) at it.

    Without one that lowers it the placement stays. No replicas.
    """
    current = ascending(layer.current, case.G)
    d, _ = best_dimension(case, layer, current)
    if isinstance(layer.routed, Uniform):
        return current, d
    placement = walker(case, layer).at(current, d)
    step = best_smooth(placement, None)
    if step is not None and step.smooth < placement.smooth * (1 - SMOOTH_GAIN):
        placement.swap(step.r, step.f)
    return placement.table(), d


def smart_moe_table(case: Case, layer: LayerCase) -> Table:
    """SmartMoE's greedy from the current placement. No replicas."""
    return ascending(smart_moe(expert_loads(case, layer), layer.current, case.G), case.G)


def rival_tables(case: Case, layer: LayerCase) -> list[Table]:
    """Tables without replicas of every rule of the page."""
    return [
        contiguous(case.E, case.P),
        longest_first(expert_loads(case, layer), case.G),
        smart_moe_table(case, layer),
        one_swap(case, layer)[0],
        *(ascending(table, case.G) for table in eplb_tables(case, layer).values()),
    ]
