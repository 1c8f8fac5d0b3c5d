"""The bound (6) with the tail (4): what no layout's step is shorter than, for every layout of one pipeline shape.

Arrays have the axes [partition, zero stage, recompute, combination], with a size of 1 where nothing differs; inside
there is one of rank kinds behind partitions.
"""

from __future__ import annotations

import numpy as np

from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.combinations import Floats, Ints
from planner.papers.layout.search.data_groups import DataGroups
from planner.papers.layout.search.layer_times import LayerTimes
from planner.papers.layout.search.rank_kinds import RankKinds, weighed


def least_step_s(
    problem: LayoutProblem,
    kinds: RankKinds,
    times: LayerTimes,
    params: tuple[Floats, Floats],
    groups: DataGroups,
    micro_batches: Ints,
) -> Floats:
    """(6) + the slowest rank's tail + fixed_s, which no replay comes below but by rounding.

    Of equal ranks the last has most before it, and all have the same tail. ``params`` are P and E of each rank kind,
    [partition, rank kind, combination].
    """
    forward = weighed(kinds.layers, times.forward_s) + _hops(kinds.forward_hops, times)
    backward = weighed(kinds.layers, times.backward_s) + _hops(kinds.backward_hops, times)
    before = weighed(kinds.before, times.forward_s + times.backward_s) + _hops(kinds.hops_before, times)
    before += micro_batches * (forward + backward)
    pipeline = before.max(axis=1)
    tail = [
        _tail(problem, stage, params, groups, forward[:, :, place], backward[:, :, place]).max(axis=1)
        for stage, place in zip(problem.search.zero_stage, times.stages, strict=True)
    ]
    steps = [pipeline[:, place] + one for place, one in zip(times.stages, tail, strict=True)]
    return np.asarray(np.stack(steps, axis=1) + problem.costs.fixed_s)


def _hops(counts: Floats, times: LayerTimes) -> Floats:
    return np.asarray(counts[..., None, None, None] * times.hop_s)


def _tail(
    problem: LayoutProblem,
    stage: int,
    params: tuple[Floats, Floats],
    groups: DataGroups,
    forward: Floats,
    backward: Floats,
) -> Floats:
    """(4) at one zero stage; ``forward`` and ``backward`` are the ranks' seconds of one micro-batch."""
    costs = problem.costs
    updated = groups.sharded(*params) if stage else params[0] + params[1]
    tail = (costs.optimizer_s_per_param * updated)[:, :, None]
    if stage <= 1:
        reduce_s = (1 if stage else 2) * groups.gather_s(*params, costs.comm_bytes.grad)[:, :, None]
        tail = tail + np.maximum(0.0, reduce_s - costs.overlap.dp * backward)
    if stage in (1, 2):
        gather_s = groups.gather_s(*params, costs.comm_bytes.param)[:, :, None]
        tail = tail + np.maximum(0.0, gather_s - costs.overlap.dp * forward)
    return tail
