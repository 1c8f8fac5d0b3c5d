"""What no schedule of one order can beat [s]: proved, and met by nearly every schedule of that order.

Below, a(t) is the start of the first attention task of layer t. It is the first of its layer on the attention GPU, and
all else of the layer and of later ones waits for it; so what layers t and on need from an idle machine comes on top.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.findep.any_order import chain_s, least_makespan_s
from planner.papers.findep.closed_form import aass_first_s, asas_s
from planner.papers.findep.problem import Order
from planner.papers.findep.times import Times

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def least_in_order_s(times: Times, num_layers: int, r1: Ints, r2: Ints, orders: tuple[Order, ...]) -> Floats:
    """A lower bound on D over some orders [s]: each one's own, and the one for any order. Broadcasts.

    ASAS: equation 8. A layer starts at least G after the one before (its first micro-batch comes back) and r1 X after
    it (the attention GPU's work). In the last one, r1 - 1 pairs go before the last, which takes max(X, G). Or the
    slowest of the other resources works T r1 r2 Y between its head and its tail, which with it are G.

    AASS: see `_least_aass_s`.
    """
    any_order = least_makespan_s(times, num_layers, r1, r2)
    own = {"ASAS": asas_s, "AASS": _least_aass_s}
    of_orders = [own[order](times, num_layers, r1, r2) for order in orders]
    return np.maximum(any_order, np.minimum.reduce(of_orders))


def _least_aass_s(times: Times, num_layers: int, r1: Ints, r2: Ints) -> Floats:
    """Layers start at least max(G, r1 X) apart, or two of them at least 2 max(...) or this path apart:

    a(t), then to the end of layer t's last micro-batch, G + (r1 - 1) max(t_a, r2 Y); its attention of layer t + 1, t_a;
    all shared experts of that layer, r1 t_s; and then a(t + 2). The last layer takes as long as one alone does, or the
    last two that path.
    """
    T, number = num_layers, np.asarray(r1)
    G = chain_s(times, r2)
    one = np.maximum(G, number * (times.attention_s + times.shared_s))
    between = np.maximum(times.attention_s, r2 * times.slowest_s)
    path = G + (number - 1) * between + times.attention_s + number * times.shared_s
    two = np.maximum(path, 2 * one)
    least = (T - 1) // 2 * two + (T - 1) % 2 * one + aass_first_s(times, r1, r2)
    if T > 1:
        least = np.maximum(least, (T - 2) // 2 * two + (T - 2) % 2 * one + path)
    return np.asarray(least)
