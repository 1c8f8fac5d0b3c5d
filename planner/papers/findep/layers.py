"""The layers of a schedule as runs on the four resources (page, "The two orders"), in either order."""

from __future__ import annotations

from functools import lru_cache

from planner.papers.findep.problem import Order
from solvers.pipeline import Pipeline, Run

AG, A2E, EG, E2A = range(4)
"""Resources: attention GPU, link to the experts, expert GPU, link back. All attention GPUs do the same at once."""
ATTENTION, SHARED, DISPATCH, EXPERT, COMBINE = range(5)
"""Kinds of task: a, s, x, e, y."""


@lru_cache(maxsize=8)
def layers(num_layers: int, r1: int, order: Order, shared: bool) -> Pipeline:
    """The runs of ``num_layers`` layers: of each layer a(i) and s(i) in their order, then x(i), e(i), y(i) by i."""
    runs: list[Run] = []
    before: list[tuple[int, ...]] = [()] * r1
    for _ in range(num_layers):
        a, s = [0] * r1, [0] * r1
        for kind, i in _attention_order(r1, order, shared):
            if kind == ATTENTION:
                a[i] = len(runs)
                runs.append(Run(ATTENTION, AG, after=before[i]))
            else:
                s[i] = len(runs)
                runs.append(Run(SHARED, AG, after=(a[i],)))
        for i in range(r1):
            x = len(runs)
            runs.append(Run(DISPATCH, A2E, after=(a[i],)))
            runs.append(Run(EXPERT, EG, feed=x))
            runs.append(Run(COMBINE, E2A, feed=x + 1))
            before[i] = (s[i], x + 2) if shared else (x + 2,)
    return Pipeline(tuple(runs))


def _attention_order(r1: int, order: Order, shared: bool) -> list[tuple[int, int]]:
    a = [(ATTENTION, i) for i in range(r1)]
    s = [(SHARED, i) for i in range(r1)] if shared else []
    if order == "AASS" or not shared:
        return a + s
    return [task for pair in zip(a, s, strict=True) for task in pair]
