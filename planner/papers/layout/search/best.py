"""The best layouts: replayed in the order of their bounds until no other can be among them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.papers.layout.evaluate import Evaluated
from planner.papers.layout.search.candidates import Candidates
from planner.papers.layout.search.combinations import Floats
from planner.papers.layout.search.evaluations import Evaluations
from planner.papers.layout.ties import EQUAL, ranked

FIRST = 4096
"""Candidates that are put in order at once; far more than are ever replayed but where all tie."""


def best(candidates: Candidates, evaluations: Evaluations, count: int) -> list[Evaluated]:
    """The first ``count`` of all that fit, or all of them, ranked as ``ties.ranked`` would rank all."""
    kept: list[Evaluated] = []
    for index in _by_bound(candidates.bound_s):
        if len(kept) >= count:
            last = kept[-1]
            if candidates.bound_s[index] > last.step_time_s * (1 + 2 * EQUAL):
                break
            if _comes_after(candidates, index, last):
                continue
        kept.append(evaluations.of(candidates.layout(index)))
        if len(kept) >= count:
            kept = ranked(kept)[:count]
    return ranked(kept)


def _by_bound(bound: Floats) -> Iterator[int]:
    """Places of bounds, the least first, equal ones as they come."""
    if len(bound) > FIRST:
        limit = np.partition(bound, FIRST)[FIRST]
        near = np.flatnonzero(bound <= limit)
        yield from near[np.argsort(bound[near], kind="stable")].tolist()
        far = np.flatnonzero(bound > limit)
        yield from far[np.argsort(bound[far], kind="stable")].tolist()
    else:
        yield from np.argsort(bound, kind="stable").tolist()


def _comes_after(candidates: Candidates, index: int, last: Evaluated) -> bool:
    """Whether a candidate that at best ties with the last kept one in time is no less by the other keys."""
    if candidates.bound_s[index] < last.step_time_s * (1 - EQUAL):
        return False
    peak = candidates.peak_bytes[index]
    if peak > last.peak_memory_bytes * (1 + 2 * EQUAL):
        return True
    near = peak >= last.peak_memory_bytes * (1 - EQUAL / 2)
    return bool(near) and candidates.layout(index).tie_key > last.layout.tie_key
