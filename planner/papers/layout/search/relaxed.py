"""Batches and numbers of GPUs under which some layout keeps the rules and has its rows; memory is not asked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import isqrt

import numpy as np

from planner.papers.layout.partitions import partitions
from planner.papers.layout.problem import LayoutProblem
from planner.papers.layout.search.combinations import Inner, every_inner
from planner.papers.layout.search.exclusions import KEPT, data_ranks, first_broken
from planner.papers.layout.search.rows import rows_of

LARGER = 4
"""Times the batch up to which a larger one is looked for."""

BATCH_RULES = ("global_batch", "interleave_micro_batches")
GPU_RULES = ("world_size", "expert_world_size", *BATCH_RULES, "torchtitan_ep")
"""Rules that read the batch, and those that read how many GPUs there are."""


def batches_that_admit(problem: LayoutProblem) -> list[int]:
    """Ascending, beyond the problem's batch and up to ``LARGER`` times it."""
    batch, units = problem.batch.global_batch_size, set()
    for pp, vpp, inner in _keeping(problem, BATCH_RULES):
        groups = pp if vpp > 1 else 1
        units.update((inner.micro_batch * data_ranks(problem, inner, pp) * groups).tolist())
    admits = np.zeros(LARGER * batch + 1, dtype=bool)
    for unit in sorted(units):
        if unit < len(admits) and not admits[unit]:
            admits[unit::unit] = True
    return (np.flatnonzero(admits[batch + 1 :]) + batch + 1).tolist()


def gpus_that_admit(problem: LayoutProblem) -> list[int]:
    """Descending, below the problem's number."""
    found: set[int] = set()
    batch = problem.batch.global_batch_size
    for pp, vpp, inner in _keeping(problem, GPU_RULES):
        columns = (inner.tp, inner.cp, inner.ep, inner.etp, inner.micro_batch)
        for tp, cp, ep, etp, micro_batch in sorted(set(zip(*(each.tolist() for each in columns), strict=True))):
            whole, rest = divmod(batch, micro_batch)
            for dp in _divisors(whole) if not rest else ():
                gpus = tp * cp * pp * dp
                if vpp > 1 and whole // dp % pp:
                    continue
                if problem.model.num_experts and gpus % (ep * etp * pp):
                    continue
                if problem.launcher_rules == "torchtitan" and dp * cp * tp % ep:
                    continue
                if gpus < problem.cluster.num_gpus:
                    found.add(gpus)
    return sorted(found, reverse=True)


def _keeping(problem: LayoutProblem, but: tuple[str, ...]) -> Iterator[tuple[int, int, Inner]]:
    """Combinations that keep all rules but some and have partitions and rows, by pipeline shape."""
    rows = rows_of(problem)
    for pp, vpp in product(problem.search.pp, problem.search.vpp):
        if not partitions(problem.model.num_layers, pp, vpp, problem.search.partitions):
            continue
        for inner in every_inner(problem.search):
            kept = (first_broken(problem, inner, pp, vpp, but) == KEPT).any(axis=0) & ~rows.missing(inner)
            if kept.any():
                yield pp, vpp, inner.only(kept)


def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})
