"""The makespan of either order in closed form (page equations 8 and 9): proposals, replay is the referee."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.papers.findep.any_order import chain_s
from planner.papers.findep.layers import layers
from planner.papers.findep.problem import Order
from planner.papers.findep.times import Times

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def asas_s(times: Times, num_layers: int, r1: int | Ints, r2: Ints) -> Floats:
    """D of ASAS (eq. 8) [s]: (T - 1) max(G, r1 F) + max(X, G) + (r1 - 1) F with F = max(X, r2 Y).

    The print counts (r2 - 1) Y twice; this form equals the replay. Broadcasts.
    """
    X = times.attention_s + times.shared_s
    F = np.maximum(X, r2 * times.slowest_s)
    G = chain_s(times, r2)
    return np.asarray((num_layers - 1) * np.maximum(G, r1 * F) + np.maximum(X, G) + (np.asarray(r1) - 1) * F)


def aass_period_s(times: Times, r1: int | Ints, r2: Ints) -> Floats:
    """P of AASS (eq. 9) [s]: how much one more layer takes, on average over the cycle of one or two layers."""
    G = chain_s(times, r2)
    between = np.maximum(times.attention_s, r2 * times.slowest_s)
    number = np.asarray(r1)
    around = (G + (number - 1) * between + times.attention_s + number * times.shared_s) / 2
    loads = np.maximum(number * (times.attention_s + times.shared_s), number * r2 * times.slowest_s)
    return np.asarray(np.maximum(np.maximum(G, loads), around))


def aass_first_s(times: Times, r1: int | Ints, r2: Ints) -> Floats:
    """D of AASS with one layer [s]: max(r1 X, G + (r1 - 1) max(t_a, r2 Y))."""
    number = np.asarray(r1)
    between = np.maximum(times.attention_s, r2 * times.slowest_s)
    own = number * (times.attention_s + times.shared_s)
    return np.asarray(np.maximum(own, chain_s(times, r2) + (number - 1) * between))


def aass_s(times: Times, num_layers: int, r1: int, r2: Ints) -> Floats:
    """D of AASS (eq. 9) [s]: one or two layers replayed, the rest in periods. Checked against replay, not proved."""
    period_s = aass_period_s(times, r1, r2)
    before = 2 - num_layers % 2
    start_s = aass_first_s(times, r1, r2) if before == 1 else replayed_s(times, 2, r1, r2, "AASS")
    return np.asarray(start_s + (num_layers - before) * period_s)


def replayed_s(times: Times, num_layers: int, r1: int, r2: Ints, order: Order) -> Floats:
    """D by event replay of every layer [s], for all candidates of ``times`` at once."""
    shared = bool(times.shared_s.any())
    seconds = (times.attention_s, times.shared_s, times.a2e_s, times.expert_s, times.e2a_s)
    return layers(num_layers, r1, order, shared).makespan(seconds, (1, 1, r2, r2, r2))
