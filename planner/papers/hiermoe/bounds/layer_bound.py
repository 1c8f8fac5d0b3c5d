"""Lower bounds that hold for any placement of a layer (page eq. 10), from the routing and the slots alone.

A limit on moves or loads only takes placements away, so they hold with limits too.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.papers.hiermoe.bounds.counted_bounds import OfTokens
from planner.papers.hiermoe.bounds.expected_bounds import OfLoads, OfUniform
from planner.papers.hiermoe.exchange.hops import Hop, hops_of
from planner.papers.hiermoe.exchange.time import hop_seconds
from planner.papers.hiermoe.instance import Case, LayerCase, Loads, Tokens


@dataclass(frozen=True)
class LayerBound:
    """No placement is below: ``objective_s`` over all allowed d, ``by_dimension`` for each of them.

    ``peaks``: the largest count of a hop [tokens], by d; ``peak_load``: assignments of the busiest rank.
    """

    objective_s: float
    by_dimension: dict[int, float]
    peaks: dict[int, dict[Hop, float]]
    peak_load: float


def layer_bound(case: Case, layer: LayerCase) -> LayerBound:
    """Equation 10 for one layer."""
    known = _known(case, layer)
    load = known.peak_load()
    peaks = {d: {hop: known.peak(hop) for hop in hops_of(case, d)} for d in case.dimensions}
    weights, kappa_s = case.problem.objective, case.problem.costs.compute_s_per_assignment
    by_dimension = {
        d: weights.a2a_multiplier * sum(hop_seconds(case, hop, peak) for hop, peak in of_d.items())
        + weights.compute_multiplier * kappa_s * load
        for d, of_d in peaks.items()
    }
    return LayerBound(min(by_dimension.values()), by_dimension, peaks, load)


def _known(case: Case, layer: LayerCase) -> OfTokens | OfLoads | OfUniform:
    routed = layer.routed
    if isinstance(routed, Tokens):
        return OfTokens.of(case, routed)
    return OfLoads(case, routed) if isinstance(routed, Loads) else OfUniform(case, routed)
