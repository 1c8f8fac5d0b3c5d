"""The front of time and memory: only candidates that no evaluated layout is known to beat are replayed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.papers.layout.evaluate import Evaluated
from planner.papers.layout.search.candidates import Candidates
from planner.papers.layout.search.combinations import Bools, Ints
from planner.papers.layout.search.evaluations import Evaluations
from planner.papers.layout.ties import EQUAL, front, ranked


def pareto(candidates: Candidates, evaluations: Evaluations, best_first: Sequence[Evaluated]) -> list[Evaluated]:
    """``ties.front`` of all that fit, from the best of them and those that they leave open."""
    found = list(best_first)
    if not found:
        return []
    left = np.flatnonzero(_may_hold(candidates, np.arange(candidates.size), found[0]))
    for one in front(found)[1:]:
        left = left[_may_hold(candidates, left, one)]
    left = left[np.argsort(candidates.bound_s[left], kind="stable")]
    while len(left):
        layout = candidates.layout(int(left[0]))
        left = left[1:]
        one = evaluations.of(layout)
        found.append(one)
        left = left[_may_hold(candidates, left, one)]
    return front(ranked({one.layout: one for one in found}.values()))


def _may_hold(candidates: Candidates, left: Ints, one: Evaluated) -> Bools:
    """Which candidates ``one`` does not keep off the front: sooner, or smaller, or equal and before it by ties."""
    bound, peak = candidates.bound_s[left], candidates.peak_bytes[left]
    sooner, later = bound < one.step_time_s * (1 - EQUAL / 2), bound > one.step_time_s * (1 + 2 * EQUAL)
    smaller, larger = peak < one.peak_memory_bytes * (1 - EQUAL / 2), peak > one.peak_memory_bytes * (1 + 2 * EQUAL)
    open_ = (sooner | ~larger) & (~later | smaller)
    for place in np.flatnonzero(~(sooner | later | smaller | larger)).tolist():
        open_[place] = candidates.layout(int(left[place])).tie_key <= one.layout.tie_key
    return np.asarray(open_)
