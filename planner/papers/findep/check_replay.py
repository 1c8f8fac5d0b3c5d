"""The earliest end that a decision and its order allow, by the check's own arithmetic: no timeline may be shorter.

Starts may each be early by a rounding; over ten thousand layers that would add up to a schedule that nothing can run.
"""

from __future__ import annotations

from planner.papers.findep.check_facts import Durations
from planner.papers.findep.problem import Order


def earliest_end_s(num_layers: int, r1: int, r2: int, order: Order, times: Durations) -> float:
    """The last end [s] if every task starts as early as its order and equation 5 let it.

    Chunks of a micro-batch are alike, so on each resource only its first and its last one matter: the last ends when
    all of them are through from the first one on, or right after the last one arrives.
    """
    a, s, x, e, y = (float(value) for value in (times.a, times.s, times.x, times.e, times.y))
    rest = r2 - 1
    ag = a2e = eg = e2a = 0.0
    back = [0.0] * r1
    for _ in range(num_layers):
        attended, shared = [0.0] * r1, [0.0] * r1
        for i in range(r1):
            ag = attended[i] = max(ag, back[i]) + a
            if order == "ASAS" and s:
                ag = shared[i] = ag + s
        if order == "AASS" and s:
            for i in range(r1):
                ag = shared[i] = ag + s
        for i in range(r1):
            first = max(a2e, attended[i]) + x
            a2e = last = first + rest * x
            first = max(eg, first) + e
            eg = last = max(first + rest * e, last + e)
            first = max(e2a, first) + y
            e2a = last = max(first + rest * y, last + y)
            back[i] = max(last, shared[i])
    return max(ag, a2e, eg, e2a)
