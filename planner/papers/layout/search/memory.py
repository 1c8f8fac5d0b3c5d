"""The peak of memory (page, section 3.6) for every layout of one pipeline shape.

Arrays have the axes [partition, zero stage, recompute, combination], with a size of 1 where nothing differs; inside
there is one of rank kinds behind partitions.
"""

from __future__ import annotations

import numpy as np

from planner.memory.allocator import communicator_bytes
from planner.memory.states import zero_states
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.combinations import Bools, Floats, Inner
from planner.papers.layout.search.data_groups import DataGroups
from planner.papers.layout.search.rank_kinds import RankKinds, weighed
from planner.papers.layout.search.rows import Priced


def peak_bytes(
    problem: LayoutProblem,
    inner: Inner,
    kinds: RankKinds,
    resident: Floats,
    priced: Priced,
    params: tuple[Floats, Floats],
    groups: DataGroups,
    recomputed: Bools,
) -> Floats:
    """The fullest rank's bytes, exact but for rounding; ``resident`` is of ``RankKinds.resident``.

    ``params`` are P and E of each rank kind, [partition, rank kind, combination].
    """
    stored = _stored(problem, priced, recomputed)
    held = weighed(resident, stored).max(axis=2)
    held += _largest(kinds.layers, (priced.kept_bytes + priced.workspace_bytes)[:, None] - stored)
    held *= 1 + problem.costs.fragmentation
    states = _states(problem, kinds.layers, priced, params, groups)
    peak = (states[:, :, :, None] + held[:, :, None]).max(axis=1)
    group_ranks = (inner.tp, inner.cp, kinds.pp, groups.dense.ranks, inner.ep, inner.etp)
    return np.asarray(peak + communicator_bytes(problem.costs.communicator_bytes, group_ranks))


def _stored(problem: LayoutProblem, priced: Priced, recomputed: Bools) -> Floats:
    """Of one micro-batch of one layer: [kind, recompute, combination]."""
    each = {"none": priced.kept_bytes, "selective": priced.selective_bytes, "full": priced.input_bytes}
    chosen = [np.where(recomputed, each[one], priced.kept_bytes) for one in problem.search.recompute]
    return np.stack(chosen, axis=1)


def _largest(layers: Floats, values: Floats) -> Floats:
    """The largest value of the kinds of layers that a rank has, [kind, ...]: [partition, rank kind, ...]."""
    present = (layers > 0).reshape(*layers.shape, *(1,) * (values.ndim - 1))
    most: Floats = np.zeros((*layers.shape[:2], *values.shape[1:]))
    for kind, value in enumerate(values):
        # No value is negative.
        np.maximum(most, present[:, :, kind] * value, out=most)
    return most


def _states(
    problem: LayoutProblem, layers: Floats, priced: Priced, params: tuple[Floats, Floats], groups: DataGroups
) -> Floats:
    """Weights, gradients and optimizer states: [partition, rank kind, zero stage, combination]."""
    size, stages = problem.costs.bytes_per_param, np.array(problem.search.zero_stage)[:, None]
    units = (_largest(layers, priced.params), _largest(layers, priced.expert_params))
    parts = [
        part
        for count, unit, group in zip(params, units, (groups.dense, groups.experts), strict=True)
        for part in zero_states(
            stages,
            count[:, :, None],
            shard_ranks=group.ranks,
            unit=unit[:, :, None],
            param_bytes=size.param,
            grad_bytes=size.grad,
            optimizer_bytes=size.optimizer,
        )
    ]
    total: Floats = sum(parts[1:], start=parts[0])
    return total
